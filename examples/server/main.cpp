//===- main.cpp - byte-server: a byte model over HTTP -----------------------===//
// byte-server --weights FILE [--kernels FILE] ...: README.md beside it is the guide.
//===----------------------------------------------------------------------===//
#include "HttpServer.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>

namespace {

using namespace server;

struct Options {
  std::string weights, kernels, host = "127.0.0.1";
  int port = 8080, threads = 1, connections = 64;
  EngineOptions engine;
};

void declare(CLI::App &app, Options &options) {
  const CLI::Range positive(int64_t(1), int64_t(1) << 30);
  app.add_option("--weights", options.weights, "safetensors of the model")->required();
  app.add_option("--kernels", options.kernels,
                 "package or database of kernels: attention on GPU 0; else on the processors");
  app.add_option("--host", options.host, "address to listen on")->capture_default_str();
  app.add_option("--port", options.port, "0: any that is free")->check(CLI::Range(0, 65535))->capture_default_str();
  app.add_option("--threads", options.threads, "of attention on the processors; 0: all")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--connections", options.connections, "clients that are served at a time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--pages", options.engine.pages, "of the cache")->check(positive)->capture_default_str();
  app.add_option("--page-size", options.engine.pageSize, "tokens of a page")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--sequences", options.engine.sequences, "requests under way together")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--chunk", options.engine.chunk, "rows of prompts in a step")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--drafts", options.engine.drafts, "guesses of a request in a step")
      ->check(CLI::Range(0, 63))
      ->capture_default_str();
  app.add_option("--queue", options.engine.queue, "requests that may wait")->check(positive)->capture_default_str();
  app.add_option("--gather", options.engine.gather,
                 "requests that the first step waits for, as a test of loads may want")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_flag("!--no-sharing", options.engine.shares, "texts that begin alike do not share pages");
}

AttentionShape shapeOf(const ByteModel &model, const EngineOptions &options) {
  AttentionShape shape;
  shape.layers = model.layers(), shape.heads = model.heads(), shape.kvHeads = model.kvHeads();
  shape.headDim = model.headDim(), shape.reach = model.reach();
  shape.pages = options.pages, shape.pageSize = options.pageSize;
  return shape;
}

// Ends the server at the first SIGINT or SIGTERM. Made before other threads, which inherit that these signals wait.
class Signals {
public:
  Signals() {
    sigemptyset(&set);
    sigaddset(&set, SIGINT), sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }
  void wait() const {
    int signal = 0;
    sigwait(&set, &signal);
  }

private:
  sigset_t set;
};

api::Status serve(const Options &options, const Signals &signals) {
  const api::Result<Weights> weights = Weights::read(options.weights);
  if (!weights)
    return weights.status();
  const api::Result<ByteModel> model = ByteModel::create(*weights);
  if (!model)
    return model.status();
  const AttentionShape shape = shapeOf(*model, options.engine);
  const api::Result<std::unique_ptr<Attention>> attention =
      options.kernels.empty() ? attentionOnProcessors(shape, options.threads) : attentionOnGpu(shape, options.kernels);
  if (!attention)
    return attention.status();
  Engine engine(*model, **attention, options.engine);
  HttpServer http(engine, options.connections);
  const int port = http.bind(options.host, options.port);
  if (port == 0)
    return {HEDDLE_IO, options.host + ":" + std::to_string(options.port) + ": cannot listen there"};
  std::printf("listening on http://%s:%d, attention on %s\n", options.host.c_str(), port,
              (*attention)->where().c_str());
  std::fflush(stdout);
  std::thread ender([&] { signals.wait(), http.stop(); });
  http.run();
  ender.join();
  return {};
}

} // namespace

int main(int argc, char **argv) {
  const Signals signals;
  Options options;
  CLI::App app("A byte model over HTTP, with continuous batching over a cache in pages.");
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2; // help and usage
  }
  const api::Status status = serve(options, signals);
  if (!status)
    std::fprintf(stderr, "byte-server: %s: %s\n", heddle_status_name(status.code()), status.message().c_str());
  return status ? 0 : 1;
}
