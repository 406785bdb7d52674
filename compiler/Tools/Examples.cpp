// The examples of every help text and of the manual page, as data. tests/lit/cli/examples.test runs each one in this
// order, in a folder of its own: an earlier one may make what a later one reads.
#include "compiler/Tools/CommandTree.h"
#include "compiler/Session/KernelShape.h"

#include <algorithm>

namespace heddle::cli {

/// ARCH stands for the first architecture that there is.
static const Example kExamples[] = {
    {"heddle check sliding_window", "a pattern of the library"},
    {"heddle check --strict *.mlir", "every file here; warnings count"},
    {"heddle explain causal --seqlen=8k --heads=16", "pairs, tiles, FLOPs and the roof on an H200"},
    {"heddle explain sliding_window --set left=4k --seqlen=1M", ""},
    {"heddle show longformer --seqlen=1k", "in the terminal"},
    {"heddle show bigbird --seqlen=4k -o bigbird.svg", "as a picture"},
    {"heddle diff causal sliding_window --seqlen=2k", "what a window loses"},
    {"heddle ring plan causal --ranks=64 --seqlen=1M --heads=64 --kv-heads=8 --links=50,10",
     "layout, bytes between ranks, predicted times"},
    {"heddle ring plan sliding_window --set left=4k --ranks=8 --seqlen=1M --links=200 -o ring.svg", "who asks whom"},
    {"heddle ring plan causal --ranks=64 --seqlen=1M --heads=64 --kv-heads=8 --links=50,10 --host=8 "
     "--host-links=200,10",
     "hosts of 8"},
    {"heddle ring decode causal --ranks=8 --seqlen=1M --heads=64 --kv-heads=8 --links=150,10",
     "one query over a cache on all ranks"},
    {"heddle ring links", "what messages between the GPUs of this machine take, for ring plan"},
    {"heddle cost training.json -o cost.svg", "all layouts of a model on a cluster; docs/cost.md"},
    {"heddle cost --published", "what others reported, beside what is predicted"},
    {"heddle compile causal --arch=ARCH --emit=cuda -o causal.cu", "the text that the GPU runs"},
    {"heddle compile causal --arch=ARCH --db=kernels.db", "a kernel for applications to load"},
    {"heddle configs causal --arch=ARCH --sample=5", "five of the feasible ones, as --config takes them"},
    {"heddle tune sliding_window --seqlen=32k --heads=16 --head-dim=128 --budget=30s", ""},
    {"heddle tune sliding_window --backward --seqlen=32k --heads=16 --head-dim=128 --budget=30s", "its gradients"},
    {"heddle tune causal --kind=decode --batch=32 --seqlen=1 --lengths=512-32k --page-size=16 --heads=32 --kv-heads=8",
     "of a server"},
    {"heddle sweep plan plan.json", ""},
    {"heddle sweep run plan.json --dir=sweep --budget=20s", "on all GPUs of this machine"},
    {"heddle sweep run plan.json --dir=sweep --shard=3/8", "every eighth item, from number 3 on"},
    {"heddle sweep status plan.json --dir=sweep", ""},
    {"heddle sweep merge plan.json --dir=sweep -o tuned.db", "what all shards found"},
    {"heddle make-inputs --seqlen=1k --heads=8 -o qkv.safetensors", ""},
    {"heddle make-inputs --seqlen=1k --for=bias -o with_bias.safetensors", "and the tensors that a pattern reads"},
    {"heddle quantize qkv.safetensors -o low.safetensors", "as e4m3, with a scale for each head"},
    {"heddle run causal --inputs=qkv.safetensors --output=out.safetensors --target=cpu --verify", ""},
    {"heddle run causal --inputs=qkv.safetensors --output=out.safetensors --target=cuda",
     "the kernel of the database, or its default"},
    {"heddle run sliding_window --stream --seqlen=16k --target=cpu --verify", "in pieces, with inputs made on the fly"},
    {"heddle bench causal sliding_window --seqlen=8k,32k --heads=16", "beside the matrix product"},
    {"heddle bench causal --backward --seqlen=8k --heads=16 --head-dim=128", "its gradients: five products a pair"},
    {"heddle bench causal --decode --batch=32 --heads=32 --kv-heads=8 --lengths=4k --page-size=16", "a cache in pages"},
    {"heddle pack plan.json -o kernels.heddle", "for applications that carry no compiler"},
    {"heddle cache ls --db=kernels.db", ""},
    {"heddle cache show 1111 --db=kernels.db", "how the key of a winner or a kernel begins"},
    {"heddle cache verify --db=kernels.db", ""},
    {"heddle cache prune --older-than=90 --dry-run --db=kernels.db", ""},
    {"heddle cache export --pattern=causal -o causal.db --db=kernels.db", ""},
    {"heddle cache import causal.db --dry-run --db=kernels.db", "what would change"},
    {"heddle cache merge all.db kernels.db causal.db", "into all.db"},
    {"heddle cache diff kernels.db causal.db", ""},
    {"heddle cache names --db=kernels.db", ""},
    {"heddle cache links --db=kernels.db", ""},
    {"heddle report --db=kernels.db -o report.html", ""},
    {"heddle help compile", ""},
    {"heddle help cache ls", ""},
    {"heddle help environment", ""},
    {"heddle completion bash", "what to put where: docs/getting-started.md"},
    {"heddle man", "man -l <(heddle man) reads it"},
};

std::vector<Example> examplesOf(const std::string &path) {
  std::vector<Example> examples;
  for (Example example : kExamples) {
    if (example.command.rfind(path + " ", 0) != 0 && example.command != path)
      continue;
    if (const size_t arch = example.command.find("=ARCH"); arch != std::string::npos)
      example.command.replace(arch + 1, 4, gpuArchNames().front());
    examples.push_back(std::move(example));
  }
  return examples;
}

std::string exampleText(const std::string &path) {
  const std::vector<Example> examples = examplesOf(path);
  size_t width = 0;
  for (const Example &example : examples)
    width = std::max(width, example.command.size());
  std::string text = examples.empty() ? "" : "Examples:\n";
  for (const Example &example : examples) {
    const std::string blanks =
        example.comment.empty() ? "" : std::string(width - example.command.size(), ' ') + "  # " + example.comment;
    text += "  " + example.command + blanks + "\n";
  }
  return text;
}

const std::vector<Variable> &environment() {
  static const std::vector<Variable> variables = {
      {"HEDDLE_DB", "kernel database (else heddle/kernels.db in $XDG_CACHE_HOME or ~/.cache); --db wins"},
      {"HEDDLE_SHIPPED_DB",
       "databases that are only read, after the one above, separated by colons; --shipped-db wins"},
      {"HEDDLE_NVRTC_LIBRARY", "the NVRTC library file, or the folder that holds it; nothing else is tried"},
      {"HEDDLE_CUDA_DRIVER_LIBRARY", "the CUDA driver library file"},
      {"HEDDLE_NCCL_LIBRARY", "the NCCL library file, for ring links"},
      {"CUDA_HOME", "a CUDA toolkit; its NVRTC is tried first"},
  };
  return variables;
}

} // namespace heddle::cli
