//===- MeasureMessages.cpp ------------------------------------------------===//
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

void put(Json &json, const char *name, const std::string &value) { json[name] = value; }
void put(Json &json, const char *name, int64_t value) { json[name] = value; }
void put(Json &json, const char *name, DType value) { json[name] = static_cast<int>(value); }
void get(const Json &json, const char *name, std::string &value) { json.at(name).get_to(value); }
void get(const Json &json, const char *name, int64_t &value) { json.at(name).get_to(value); }
void get(const Json &json, const char *name, DType &value) { value = static_cast<DType>(json.at(name).get<int>()); }

Json recordJson(const KernelRecord &record) {
  Json json = Json::object();
  KernelRecord::fields([&](const char *name, auto member) { put(json, name, record.*member); });
  return json;
}

KernelRecord recordOf(const Json &json) {
  KernelRecord record;
  KernelRecord::fields([&](const char *name, auto member) { get(json, name, record.*member); });
  return record;
}

Json shapeJson(const ProblemShape &shape) {
  return Json::array(
      {shape.batch, shape.heads, shape.kvHeads, shape.seqlenQ, shape.seqlenK, shape.qOrigin, shape.kOrigin});
}

ProblemShape shapeFrom(const Json &numbers) {
  ProblemShape shape;
  int64_t *places[] = {&shape.batch,   &shape.heads,   &shape.kvHeads, &shape.seqlenQ,
                       &shape.seqlenK, &shape.qOrigin, &shape.kOrigin};
  for (size_t i = 0; i < std::size(places); ++i)
    numbers.at(i).get_to(*places[i]);
  return shape;
}

} // namespace

std::string encode(const MeasureTask &task) {
  const MeasureSetup &setup = task.setup;
  return packed({{"shape", shapeJson(setup.shape)},
                 {"parameters", setup.shape.parameters},
                 {"dtype", static_cast<int>(setup.dtype)},
                 {"head_dim", setup.headDim},
                 {"value_dim", setup.valueDim},
                 {"scale", setup.scale},
                 {"seed", setup.seed},
                 {"rows", setup.verifiedRows},
                 {"launch_limit", setup.launchLimitSeconds},
                 {"device", task.device},
                 {"pattern", task.pattern},
                 {"operand_file", task.operandFile},
                 {"operand_count", task.operandCount}});
}

Result<MeasureTask> decodeTask(const std::string &message) {
  return unpacked<MeasureTask>(message, [](const Json &json) {
    MeasureTask task;
    MeasureSetup &setup = task.setup;
    setup.shape = shapeFrom(json.at("shape"));
    json.at("parameters").get_to(setup.shape.parameters);
    get(json, "dtype", setup.dtype);
    get(json, "head_dim", setup.headDim);
    get(json, "value_dim", setup.valueDim);
    json.at("scale").get_to(setup.scale);
    json.at("seed").get_to(setup.seed);
    get(json, "rows", setup.verifiedRows);
    json.at("launch_limit").get_to(setup.launchLimitSeconds);
    get(json, "device", task.device);
    get(json, "pattern", task.pattern);
    get(json, "operand_file", task.operandFile);
    get(json, "operand_count", task.operandCount);
    return task;
  });
}

std::string encode(const MeasureQuestion &question) {
  Json json = {
      {"what", static_cast<int>(question.what)}, {"candidate", question.candidate}, {"released", question.released}};
  if (question.hasRecord)
    json["record"] = recordJson(question.record);
  return packed(json);
}

Result<MeasureQuestion> decodeQuestion(const std::string &message) {
  return unpacked<MeasureQuestion>(message, [](const Json &json) {
    MeasureQuestion question;
    question.what = static_cast<MeasureQuestion::What>(json.at("what").get<int>());
    get(json, "candidate", question.candidate);
    json.at("released").get_to(question.released);
    question.hasRecord = json.contains("record");
    if (question.hasRecord)
      question.record = recordOf(json.at("record"));
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
    get(json, "clock", answer.smClockMhz);
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
