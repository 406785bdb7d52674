#include "compiler/Measure/MeasureMessages.h"

#include <nlohmann/json.hpp>

namespace heddle {
namespace {

using Json = nlohmann::json;

std::string packed(const Json &json) {
  std::string bytes;
  Json::to_msgpack(json, bytes);
  return bytes;
}

/// What `read` makes of the message; it may throw what the library throws of a missing or wrong value.
template <class T, class Read> Result<T> unpacked(const std::string &message, Read &&read) {
  try {
    return read(Json::from_msgpack(message));
  } catch (const Json::exception &error) {
    return Status::corrupt(std::string("no message of a measurement: ") + error.what());
  }
}

/// Each field of a message once, for both ways: `f(name, field)` writes or reads it.
template <class Task, class F> void eachField(Task &task, F &&f) {
  auto &setup = task.setup;
  auto &shape = setup.shape;
  f("base", setup.kind.base), f("adds", setup.kind.adds);
  f("is_deterministic", setup.kind.isDeterministic), f("gradients_of", setup.kind.gradientsOf);
  f("is_key_major", setup.kind.hasKeyMajorValues);
  f("batch", shape.batch), f("heads", shape.heads), f("kv_heads", shape.kvHeads);
  f("seqlen_q", shape.seqlenQ), f("seqlen_k", shape.seqlenK);
  f("q_origin", shape.qOrigin), f("k_origin", shape.kOrigin), f("parameters", shape.parameters);
  f("least_keys", setup.served.lengths.least), f("most_keys", setup.served.lengths.most);
  f("key_places", setup.served.layout.places), f("page_size", setup.served.layout.pageSize);
  f("q", setup.elements.q), f("k", setup.elements.k), f("v", setup.elements.v), f("out", setup.elements.out);
  f("precision", setup.elements.precision), f("scale_rows", setup.elements.scaleRows);
  f("head_dim", setup.headDim), f("value_dim", setup.valueDim), f("scale", setup.scale);
  f("seed", setup.seed), f("rows", setup.verifiedRows), f("launch_limit", setup.launchLimitSeconds);
  f("device", task.device), f("pattern", task.pattern);
  f("operand_file", task.operandFile), f("operand_count", task.operandCount);
}

/// Calls `f` with the fields of a KernelRecord, likewise.
template <class Record, class F> void eachRecordField(Record &record, F &&f) {
  KernelRecord::fields([&](const char *name, auto member) { f(name, record.*member); });
}

auto writer(Json &json) {
  return [&json](const char *name, const auto &field) { json[name] = field; };
}
auto reader(const Json &json) {
  return [&json](const char *name, auto &field) { json.at(name).get_to(field); };
}

} // namespace

std::string encode(const MeasureTask &task) {
  Json json = Json::object();
  eachField(task, writer(json));
  eachRecordField(task.setup.forward, writer(json["forward"]));
  return packed(json);
}

Result<MeasureTask> decodeTask(const std::string &message) {
  return unpacked<MeasureTask>(message, [](const Json &json) {
    MeasureTask task;
    eachField(task, reader(json));
    eachRecordField(task.setup.forward, reader(json.at("forward")));
    return task;
  });
}

std::string encode(const MeasureQuestion &question) {
  Json json = {{"what", question.what}, {"candidate", question.candidate}, {"released", question.released}};
  if (question.hasRecord)
    eachRecordField(question.record, writer(json["record"]));
  return packed(json);
}

Result<MeasureQuestion> decodeQuestion(const std::string &message) {
  return unpacked<MeasureQuestion>(message, [](const Json &json) {
    MeasureQuestion question;
    json.at("what").get_to(question.what);
    json.at("candidate").get_to(question.candidate);
    json.at("released").get_to(question.released);
    question.hasRecord = json.contains("record");
    if (question.hasRecord)
      eachRecordField(question.record, reader(json["record"]));
    return question;
  });
}

std::string encode(const MeasureAnswer &answer) {
  Json json = {{"number", answer.number}, {"clock", answer.smClockMhz}, {"power", answer.powerWatts}};
  if (!answer.status.isOk())
    json["status"] = {static_cast<int>(answer.status.code()), answer.status.message()};
  if (answer.failure)
    json["failure"] = {static_cast<int>(answer.failure->outcome), answer.failure->message};
  return packed(json);
}

Result<MeasureAnswer> decodeAnswer(const std::string &message) {
  return unpacked<MeasureAnswer>(message, [](const Json &json) {
    MeasureAnswer answer;
    json.at("number").get_to(answer.number);
    json.at("clock").get_to(answer.smClockMhz);
    json.at("power").get_to(answer.powerWatts);
    if (json.contains("status"))
      answer.status =
          Status(static_cast<StatusCode>(json["status"].at(0).get<int>()), json["status"].at(1).get<std::string>());
    if (json.contains("failure"))
      answer.failure = tuner::Failure{static_cast<tuner::Outcome>(json["failure"].at(0).get<int>()),
                                      json["failure"].at(1).get<std::string>()};
    return answer;
  });
}

} // namespace heddle
