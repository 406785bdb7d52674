//===- HttpServer.cpp - the engine over HTTP --------------------------------===//
#include "HttpServer.h"

#include "Completions.h"

#include <httplib.h>
#include <sys/socket.h>

namespace server {
namespace {

constexpr size_t kMostBody = size_t(64) << 20;
constexpr auto kGlance = std::chrono::milliseconds(50); // between looks at whether a client is still there
constexpr char kJson[] = "application/json";

int httpStatusOf(const api::Status &status) {
  switch (status.code()) {
  case HEDDLE_INVALID_ARGUMENT:
    return 400;
  case HEDDLE_UNAVAILABLE:
    return 503;
  default:
    return 500;
  }
}

void answerError(httplib::Response &response, int code, const std::string &name, const std::string &message) {
  response.status = code;
  response.set_content(textOfError(name, message), kJson);
}

void answerError(httplib::Response &response, const api::Status &status) {
  answerError(response, httpStatusOf(status), heddle_status_name(status.code()), status.message());
}

// What one connection sends of a request under way. Held by the library until the answer is over; then the request is
// cancelled, which means nothing where it has ended.
class Answer {
public:
  Answer(int64_t id, Engine::Pointer generation)
      : generation(std::move(generation)), text(this->generation->request.stop) {
    whole.id = id;
    whole.promptTokens = int64_t(this->generation->request.prompt.size());
  }
  ~Answer() { generation->cancel(); }

  // Waits for the first bytes, or the end. The failure, where it failed.
  api::Status begin() {
    while (news.bytes.empty() && news.finish == Finish::none)
      news = generation->wait(kGlance);
    return news.failure;
  }

  // Sends what there is. False: the client is gone, or there is nothing to send that would be right.
  bool send(httplib::DataSink &sink) {
    if (news.bytes.empty() && news.finish == Finish::none)
      news = generation->wait(kGlance);
    if (!sink.is_writable() || (news.finish == Finish::failed && !generation->request.isStreamed))
      return false;
    const Generation::News told = std::exchange(news, {});
    if (told.finish == Finish::failed)
      return write(sink, event(textOfError(heddle_status_name(told.failure.code()), told.failure.message()))) &&
             close(sink);
    if (told.bytes.empty() && told.finish == Finish::none)
      return true;
    const std::string ready = text.add(told.bytes, told.finish);
    whole.bytes += told.bytes, whole.text += ready, whole.finish = told.finish;
    whole.completionTokens = int64_t(whole.bytes.size()), whole.cachedTokens = generation->cachedTokens;
    if (generation->request.isStreamed) {
      Completion part = whole;
      part.bytes = told.bytes, part.text = ready;
      if (!write(sink, event(textOf(part)) + (told.finish == Finish::none ? "" : event("[DONE]"))))
        return false;
    } else if (told.finish != Finish::none && !write(sink, textOf(whole))) {
      return false;
    }
    return told.finish == Finish::none || close(sink);
  }

private:
  static std::string event(const std::string &data) { return "data: " + data + "\n\n"; }
  static bool write(httplib::DataSink &sink, const std::string &data) { return sink.write(data.data(), data.size()); }
  static bool close(httplib::DataSink &sink) {
    sink.done();
    return true;
  }

  Engine::Pointer generation;
  TextStream text;
  Completion whole;
  Generation::News news;
};

} // namespace

struct HttpServer::Content {
  Content(Engine &engine, int connections) : engine(engine) {
    http.new_task_queue = [connections] { return new httplib::ThreadPool(size_t(connections)); };
    http.set_payload_max_length(kMostBody);
    http.set_tcp_nodelay(true);
    http.set_socket_options([this](socket_t made) {
      const int yes = 1;
      ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      socket = made;
    });
    http.Post("/v1/completions", [this](const auto &request, auto &response) { complete(request, response); });
    http.Get("/health", [](const auto &, auto &response) { response.set_content("{\"status\":\"ok\"}", kJson); });
    http.Get("/metrics", [this](const auto &, auto &response) {
      response.set_content(this->engine.metrics().text(), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    });
    http.set_error_handler(
        [](const httplib::Request &request, httplib::Response &response) { sayError(request, response); });
    http.set_exception_handler([](const httplib::Request &, httplib::Response &response, std::exception_ptr) {
      answerError(response, 500, "internal", "the request failed in the server"); // memory ran out
    });
  }

  void complete(const httplib::Request &request, httplib::Response &response) {
    api::Result<Request> parsed = parseCompletion(request.body);
    if (!parsed)
      return refuse(response, parsed.status());
    const bool isStreamed = parsed->isStreamed;
    api::Result<Engine::Pointer> generation = engine.submit(std::move(*parsed));
    if (!generation)
      return refuse(response, generation.status());
    const auto answer = std::make_shared<Answer>(++ids, *generation);
    if (!isStreamed) // an error still has its code then
      if (const api::Status status = answer->begin(); !status)
        return answerError(response, status);
    response.set_chunked_content_provider(isStreamed ? "text/event-stream" : kJson,
                                          [answer](size_t, httplib::DataSink &sink) { return answer->send(sink); });
  }

  void refuse(httplib::Response &response, const api::Status &status) {
    ++engine.metrics().refused;
    answerError(response, status);
  }

  // What the library answers by itself has no body.
  static void sayError(const httplib::Request &request, httplib::Response &response) {
    if (!response.body.empty())
      return;
    const int code = response.status;
    const std::string asked = request.method + " " + request.path;
    if (code == 404)
      answerError(response, code, "notFound", asked + ": there are POST /v1/completions, GET /health, GET /metrics");
    else if (code == 413)
      answerError(response, code, "invalidArgument",
                  asked + ": the body has more than " + std::to_string(kMostBody) + " bytes");
    else
      answerError(response, code, "invalidArgument", asked + ": HTTP status " + std::to_string(code));
  }

  // The library lets five clients wait to be accepted. Where more come at once, Linux answers by cookies, and may lose one that
  // is connected, as far as it knows.
  bool letAllWait() const { return ::listen(socket, SOMAXCONN) == 0; }

  Engine &engine;
  httplib::Server http;
  socket_t socket = INVALID_SOCKET; // the last one that was made
  std::atomic<int64_t> ids{0};
};

HttpServer::HttpServer(Engine &engine, int connections) : content(std::make_unique<Content>(engine, connections)) {}
HttpServer::~HttpServer() = default;

int HttpServer::bind(const std::string &host, int port) {
  const int bound = port == 0                                ? content->http.bind_to_any_port(host)
                    : content->http.bind_to_port(host, port) ? port
                                                             : 0;
  return bound > 0 && content->letAllWait() ? bound : 0;
}

void HttpServer::run() { content->http.listen_after_bind(); }
void HttpServer::stop() { content->http.stop(); }

} // namespace server
