//===- HttpServer.h - the engine over HTTP ----------------------------------===//
// POST /v1/completions, GET /health, GET /metrics. A thread for each connection, which waits for the engine; a client that
// goes away cancels its request.
//===----------------------------------------------------------------------===//
#pragma once

#include "Engine.h"

#include <memory>

namespace server {

class HttpServer {
public:
  HttpServer(Engine &engine, int connections);
  ~HttpServer();

  // The port that it listens on, that was asked for or, for 0, any; 0: it cannot be had.
  int bind(const std::string &host, int port);
  // Serves until stop, which any thread may call.
  void run();
  void stop();

private:
  struct Content;
  std::unique_ptr<Content> content; // what includes the library
};

} // namespace server
