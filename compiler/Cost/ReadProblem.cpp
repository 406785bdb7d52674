#include "compiler/Cost/ReadProblem.h"
#include "compiler/Io/JsonPlace.h"
#include "runtime/Core/ReadFile.h"

#include <cmath>

namespace heddle::cost {
namespace {

/// Bounds beyond which a search would not end, or products of whole numbers not fit.
constexpr int64_t kMostLayers = 10000, kMostExperts = 100000, kMostGpus = int64_t(1) << 20, kMostRanks = 1 << 14;
constexpr double kMostBatchTokens = 1e18;

Status readLatent(const JsonPlace &place, LatentSpec &latent) {
  return place.object({{"query", countInto(latent.query, 0)},
                       {"key_value", countInto(latent.keyValue)},
                       {"rope", countInto(latent.rope, 0)}});
}

Status checkModel(const JsonPlace &place, ModelSpec &model) {
  for (const auto &[key, value] : {std::pair("layers", model.layers),
                                   {"width", model.width},
                                   {"heads", model.heads},
                                   {"ffn", model.ffn},
                                   {"vocabulary", model.vocabulary}})
    if (value == 0)
      return place.missing(key);
  if (model.headDim == 0) {
    if (model.width % model.heads)
      return place.wrong("width " + std::to_string(model.width) + " is no multiple of " + std::to_string(model.heads) +
                         " heads: give head_dim");
    model.headDim = model.width / model.heads;
  }
  model.valueDim = model.valueDim ? model.valueDim : model.headDim;
  model.kvHeads = model.kvHeads ? model.kvHeads : model.heads;
  if (model.heads % model.kvHeads)
    return place.wrong("heads " + std::to_string(model.heads) + " are no multiple of kv_heads " +
                       std::to_string(model.kvHeads));
  if (!model.hasExperts())
    return {};
  if (model.activeExperts < 1 || model.activeExperts > model.experts)
    return place.wrong("active_experts must be 1 to " + std::to_string(model.experts) + ", got " +
                       std::to_string(model.activeExperts));
  if (model.denseLayers >= model.layers)
    return place.wrong("dense_layers must be fewer than the " + std::to_string(model.layers) + " layers");
  model.expertFfn = model.expertFfn ? model.expertFfn : model.ffn;
  return {};
}

Status readModel(const JsonPlace &place, ModelSpec &model) {
  HEDDLE_TRY(place.object({{"layers", countInto(model.layers, 1, kMostLayers)},
                           {"width", countInto(model.width)},
                           {"heads", countInto(model.heads)},
                           {"kv_heads", countInto(model.kvHeads)},
                           {"head_dim", countInto(model.headDim)},
                           {"value_dim", countInto(model.valueDim)},
                           {"ffn", countInto(model.ffn)},
                           {"vocabulary", countInto(model.vocabulary)},
                           {"experts", countInto(model.experts, 1, kMostExperts)},
                           {"active_experts", countInto(model.activeExperts)},
                           {"shared_experts", countInto(model.sharedExperts, 0)},
                           {"expert_ffn", countInto(model.expertFfn)},
                           {"dense_layers", countInto(model.denseLayers, 0)},
                           {"expert_hosts", countInto(model.expertHosts)},
                           {"gated", flagInto(model.isGated)},
                           {"tied", flagInto(model.isTied)},
                           {"parallel_blocks", flagInto(model.hasParallelBlocks)},
                           {"latent", [&](const JsonPlace &at) { return readLatent(at, model.latent); }}}));
  return checkModel(place, model);
}

Status readSizes(const JsonPlace &place, std::vector<std::string> &sizes) {
  if (!place.value.is_object())
    return place.expected("an object of sizes, such as {\"left\": 4095}");
  for (const auto &entry : place.value.items()) {
    int64_t count = 0;
    HEDDLE_TRY(countInto(count, std::numeric_limits<int64_t>::min())(place.at(entry.key())));
    sizes.push_back(entry.key() + "=" + std::to_string(count));
  }
  return {};
}

Status readOperands(const JsonPlace &place, std::vector<std::string> &operands) {
  if (!place.value.is_object())
    return place.expected("an object of tensors, such as {\"cu\": \"lengths.safetensors:cu\"}");
  for (const auto &entry : place.value.items()) {
    std::string tensor;
    HEDDLE_TRY(textInto(tensor)(place.at(entry.key())));
    operands.push_back(entry.key() + "=" + tensor);
  }
  return {};
}

Status readAttentionOf(const JsonPlace &place, AttentionSpec &spec) {
  if (place.value.is_string())
    return textInto(spec.pattern)(place);
  double forward = 0, backward = 0;
  HEDDLE_TRY(place.object({{"pattern", textInto(spec.pattern)},
                           {"set", [&](const JsonPlace &at) { return readSizes(at, spec.sizes); }},
                           {"operands", [&](const JsonPlace &at) { return readOperands(at, spec.operands); }},
                           {"layers", countInto(spec.layers)},
                           {"forward_tflops", realInto(forward, 1e-3)},
                           {"backward_tflops", realInto(backward, 1e-3)},
                           {"kernel", [&](const JsonPlace &at) {
                              std::string name;
                              HEDDLE_TRY(textInto(name)(at));
                              Result<AttentionKernel> kernel = parseAttentionKernel(name);
                              if (!kernel)
                                return at.wrong(kernel.status().message());
                              spec.kernel = *kernel;
                              return Status();
                            }}}));
  if (forward > 0)
    spec.givenForward = forward;
  if (backward > 0)
    spec.givenBackward = backward;
  return spec.pattern.empty() ? place.missing("pattern") : Status();
}

Status readAttention(const JsonPlace &place, std::vector<AttentionSpec> &list) {
  return place.list([&](const JsonPlace &at) { return readAttentionOf(at, list.emplace_back()); });
}

Status checkAttention(const JsonPlace &place, CostProblem &problem) {
  if (problem.attention.empty())
    problem.attention.emplace_back().pattern = "causal";
  int64_t sum = 0, open = 0;
  for (const AttentionSpec &spec : problem.attention) {
    sum += spec.layers;
    open += spec.layers == 0;
  }
  const int64_t rest = problem.model.layers - sum;
  if (open > 1 || rest < open || (open == 0 && rest != 0))
    return place.wrong("layers of attention sum to " + std::to_string(sum) + " of the model's " +
                       std::to_string(problem.model.layers) + ": give each its layers, one may be left open");
  for (AttentionSpec &spec : problem.attention)
    spec.layers = spec.layers ? spec.layers : rest;
  return {};
}

Status readLink(const JsonPlace &place, Link &link) {
  HEDDLE_TRY(place.object({{"gbps", realInto(link.gbps, 1e-3)}, {"us", realInto(link.us)}}));
  return link.gbps > 0 ? Status() : place.missing("gbps");
}

Status readGpu(const JsonPlace &place, Accelerator &gpu) {
  if (place.value.is_string()) {
    Result<Accelerator> found = findAccelerator(place.value.get<std::string>());
    if (!found)
      return place.wrong(found.status().message() +
                         "; or an object with name, tflops, bandwidth_gbps, memory_gib and units of another GPU");
    gpu = found.take();
    return {};
  }
  HEDDLE_TRY(place.object({{"name", textInto(gpu.name)},
                           {"tflops", realInto(gpu.tflops, 1e-3)},
                           {"fp8_tflops", realInto(gpu.fp8Tflops)},
                           {"bandwidth_gbps", realInto(gpu.bandwidthGBps, 1e-3)},
                           {"memory_gib", realInto(gpu.memoryGiB, 1e-3)},
                           {"watts", realInto(gpu.watts)},
                           {"units", realInto(gpu.units, 1)}}));
  gpu.fullName = gpu.name;
  for (const auto &[key, value] : {std::pair("tflops", gpu.tflops),
                                   {"bandwidth_gbps", gpu.bandwidthGBps},
                                   {"memory_gib", gpu.memoryGiB},
                                   {"units", gpu.units}})
    if (value == 0)
      return place.missing(key);
  return gpu.name.empty() ? place.missing("name") : Status();
}

Status readCluster(const JsonPlace &place, Cluster &cluster) {
  bool hasGpu = false;
  HEDDLE_TRY(place.object({{"gpu",
                            [&](const JsonPlace &at) {
                              hasGpu = true;
                              return readGpu(at, cluster.gpu);
                            }},
                           {"gpus", countInto(cluster.gpus, 1, kMostGpus)},
                           {"gpus_per_host", countInto(cluster.perHost, 1, kMostGpus)},
                           {"inside", [&](const JsonPlace &at) { return readLink(at, cluster.inside); }},
                           {"between", [&](const JsonPlace &at) { return readLink(at, cluster.between); }},
                           {"beyond", [&](const JsonPlace &at) { return readLink(at, cluster.beyond); }},
                           {"pod_gpus", countInto(cluster.podGpus)},
                           {"host_link_gbps", realInto(cluster.hostLinkGBps)},
                           {"host_memory_gib", realInto(cluster.hostMemoryGiB)},
                           {"other_watts", realInto(cluster.otherWatts)},
                           {"power_overhead", realInto(cluster.overhead, 1)}}));
  if (!hasGpu)
    return place.missing("gpu");
  if (cluster.gpus == 0)
    return place.missing("gpus");
  if (cluster.perHost > 1 && cluster.gpus > 1 && cluster.inside.gbps == 0)
    return place.wrong("no links: give \"inside\", the links in a host, such as {\"gbps\": 450, \"us\": 3}");
  if (cluster.gpus > cluster.perHost && cluster.between.gbps == 0)
    return place.wrong(
        "no links: give \"between\", the links of a GPU to other hosts, such as {\"gbps\": 50, \"us\": 10}");
  if (cluster.podGpus > 0 && cluster.gpus > cluster.podGpus && cluster.beyond.gbps == 0)
    return place.wrong("no links: give \"beyond\", the links between pods of " + std::to_string(cluster.podGpus) +
                       " GPUs");
  return {};
}

template <class Enum> JsonReader namesInto(std::vector<Enum> &list, int count) {
  return [&list, count](const JsonPlace &place) {
    return place.list([&](const JsonPlace &at) {
      std::string name, known;
      HEDDLE_TRY(textInto(name)(at));
      for (int index = 0; index < count; ++index) {
        known += std::string(index ? ", " : "") + nameOf(Enum(index));
        if (name == nameOf(Enum(index))) {
          list.push_back(Enum(index));
          return Status();
        }
      }
      return at.expected("one of " + known);
    });
  };
}

JsonReader countsInto(std::vector<int64_t> &list, int64_t most, int64_t least = 1) {
  return [&list, most, least](const JsonPlace &place) {
    return place.list([&](const JsonPlace &at) { return countInto(list.emplace_back(), least, most)(at); });
  };
}

JsonReader flagsInto(std::vector<bool> &list) {
  return [&list](const JsonPlace &place) {
    bool value = false;
    HEDDLE_TRY(flagInto(value)(place));
    list.push_back(value);
    return Status();
  };
}

Status readParallelism(const JsonPlace &place, LayoutChoices &choices) {
  HEDDLE_TRY(place.object({{"tensor", countsInto(choices.tensor, kMostRanks)},
                           {"pipeline", countsInto(choices.pipeline, kMostRanks)},
                           {"virtual", countsInto(choices.virtualStages, kMostRanks)},
                           {"schedule", namesInto(choices.schedule, kSchedules)},
                           {"context", countsInto(choices.context, kMostRanks)},
                           {"context_scheme", namesInto(choices.scheme, kContextSchemes)},
                           {"data", countsInto(choices.data, kMostGpus)},
                           {"zero", countsInto(choices.zero, kMostRanks, 0)},
                           {"expert", countsInto(choices.expert, kMostGpus)},
                           {"micro_batch", countsInto(choices.microBatch, kMostGpus)},
                           {"recompute", namesInto(choices.recompute, kRecomputes)},
                           {"sequence", flagsInto(choices.splitsSequence)},
                           {"offload_optimizer", flagsInto(choices.offloadsOptimizer)},
                           {"offload_activations", flagsInto(choices.offloadsActivations)}}));
  for (int64_t stage : choices.zero)
    if (stage > 3)
      return place.wrong("zero is 0, 1, 2 or 3, got " + std::to_string(stage));
  return {};
}

Status readOverlap(const JsonPlace &place, Overlap &overlap) {
  return place.object({{"tensor", flagInto(overlap.tensor)},
                       {"pipeline", flagInto(overlap.pipeline)},
                       {"data", flagInto(overlap.data)},
                       {"context", flagInto(overlap.context)},
                       {"units", realInto(overlap.units)}});
}

Status readPrecision(const JsonPlace &place, Precision &precision) {
  if (!place.value.is_string())
    return place.object({{"products", [&](const JsonPlace &at) { return readPrecision(at, precision); }},
                         {"parameter_bytes", realInto(precision.parameterBytes, 0.5)},
                         {"gradient_bytes", realInto(precision.gradientBytes, 0.5)},
                         {"gradients_apart", flagInto(precision.addsGradientsApart)},
                         {"optimizer_bytes", realInto(precision.optimizerBytes)}});
  const std::string name = place.value.get<std::string>();
  if (name != "bf16" && name != "fp16" && name != "fp8")
    return place.expected("bf16, fp16 or fp8");
  precision.isFp8 = name == "fp8";
  return {};
}

Status readPrices(const JsonPlace &place, Money &money) {
  return place.object({{"gpu_hour", realInto(money.gpuHour)}, {"kwh", realInto(money.kilowattHour)}});
}

Status readFailures(const JsonPlace &place, Failures &failures) {
  return place.object(
      {{"gpu_hours", realInto(failures.gpuHours, 1)},
       {"restart_minutes", realInto(failures.restartMinutes)},
       {"ring_minutes", [&](const JsonPlace &at) { return realInto(failures.ringMinutes.emplace(0), 0)(at); }},
       {"checkpoint_gbps", realInto(failures.checkpointGBps, 1e-3)}});
}

Status readReported(const JsonPlace &place, Reported &reported) {
  return place.object({{"seconds_per_step", realInto(reported.secondsOfStep, 1e-6)},
                       {"what", textInto(reported.what)},
                       {"source", textInto(reported.source)},
                       {"note", textInto(reported.note)}});
}

Status checkWhole(const JsonPlace &place, const CostProblem &problem) {
  if (problem.model.layers == 0)
    return place.missing("model");
  if (problem.cluster.gpus == 0)
    return place.missing("cluster");
  if (problem.context == 0)
    return place.missing("context");
  if (problem.batchTokens == 0)
    return place.missing("batch_tokens");
  if (problem.batchTokens < double(problem.context))
    return place.wrong("batch_tokens " + std::to_string(int64_t(problem.batchTokens)) + " hold no sequence of " +
                       std::to_string(problem.context) + " tokens");
  const double sequences = std::floor(problem.batchTokens / double(problem.context));
  if (const double whole = sequences * double(problem.context); whole != problem.batchTokens)
    return place.wrong("batch_tokens " + std::to_string(int64_t(problem.batchTokens)) + " are no multiple of the " +
                       std::to_string(problem.context) + " tokens of a sequence: take " +
                       std::to_string(int64_t(whole)) + " or " + std::to_string(int64_t(whole) + problem.context));
  if (problem.overlap.units >= problem.cluster.gpu.units)
    return place.at("overlap").wrong("units must be fewer than those of the GPU");
  if (problem.precision.isFp8 && problem.cluster.gpu.fp8Tflops == 0)
    return place.at("precision").wrong(problem.cluster.gpu.name + " has no rate of fp8 products: take bf16");
  return {};
}

} // namespace

Result<CostFile> parseCostFile(const std::string &text, const std::string &label) {
  HEDDLE_ASSIGN(const OrderedJson json, parseJson(text, label));
  CostFile file;
  CostProblem &problem = file.problem;
  problem.where = problem.name = label;
  const JsonPlace top = {json, label, ": "};
  HEDDLE_TRY(top.object({{"name", textInto(problem.name)},
                         {"model", [&](const JsonPlace &at) { return readModel(at, problem.model); }},
                         {"attention", [&](const JsonPlace &at) { return readAttention(at, problem.attention); }},
                         {"context", countInto(problem.context)},
                         {"batch_tokens", realInto(problem.batchTokens, 1, kMostBatchTokens)},
                         {"train_tokens", realInto(problem.trainTokens, 1)},
                         {"precision", [&](const JsonPlace &at) { return readPrecision(at, problem.precision); }},
                         {"cluster", [&](const JsonPlace &at) { return readCluster(at, problem.cluster); }},
                         {"parallelism", [&](const JsonPlace &at) { return readParallelism(at, problem.choices); }},
                         {"overlap", [&](const JsonPlace &at) { return readOverlap(at, problem.overlap); }},
                         {"prices", [&](const JsonPlace &at) { return readPrices(at, problem.money); }},
                         {"failures", [&](const JsonPlace &at) { return readFailures(at, problem.failures); }},
                         {"reported", [&](const JsonPlace &at) { return readReported(at, file.reported); }}}));
  HEDDLE_TRY(checkWhole(top, problem));
  problem.counts = countParameters(problem.model);
  HEDDLE_TRY(checkAttention(json.contains("attention") ? top.at("attention") : top, problem));
  return file;
}

Result<CostFile> loadCostFile(const std::string &path) {
  HEDDLE_ASSIGN(const std::string text, readTextFile(path, {"cost file"}));
  return parseCostFile(text, path);
}

} // namespace heddle::cost
