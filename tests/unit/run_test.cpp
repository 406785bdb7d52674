//===- run_test.cpp - heddle run and make-inputs as a user types them ----------===//
// Starts the program: results that verify, the same bytes twice, and for every kind of bad input one clear message,
// the right exit code, and nothing written.
//===----------------------------------------------------------------------===//
#include "support/Places.h"
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/Safetensors.h"

#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace heddle;
namespace fs = std::filesystem;

namespace {

std::string contents(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

struct Finished {
  int code;
  std::string out, err;
};

/// A folder of its own that is gone afterwards.
class Workplace {
public:
  Workplace() : folder(fs::temp_directory_path() / ("heddle-run-" + std::to_string(::getpid()))) {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~Workplace() { fs::remove_all(folder); }

  std::string path(const std::string &name) const { return (folder / name).string(); }

  Finished heddle(const std::string &arguments, const std::string &environment = "") const {
    std::string command = environment + " HEDDLE_DB='" + path("none.db") + "' '" + test::places().heddle + "' " +
                          arguments + " >" + path("stdout") + " 2>" + path("stderr");
    int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, contents(folder / "stdout"), contents(folder / "stderr")};
  }

  std::string inputs(const std::string &name, const std::string &options) const {
    Finished made = heddle("make-inputs " + options + " -o " + path(name));
    REQUIRE_MESSAGE(made.code == 0, made.err);
    return path(name);
  }

  Finished run(const std::string &pattern, const std::string &inputs, const std::string &options) const {
    return heddle("run " + test::places().patterns + "/" + pattern + ".mlir --inputs=" + inputs +
                  " --output=" + path("out.safetensors") + " " + options);
  }

private:
  fs::path folder;
};

void checkRefused(const Workplace &place, const Finished &finished, int code, const std::string &says) {
  CHECK(finished.code == code);
  CHECK_MESSAGE(finished.err.find(says) != std::string::npos, finished.err);
  CHECK(finished.out.empty());
  CHECK_FALSE(fs::exists(place.path("out.safetensors")));
}

} // namespace

TEST_CASE("every pattern verifies on the CPU") {
  Workplace place;
  for (const char *dtype : {"fp32", "bf16", "fp16"}) {
    std::string inputs = place.inputs(
        "x.safetensors",
        std::string("--seqlen=150 --seqlen-k=170 --heads=6 --kv-heads=2 --head-dim=32 --batch=2 --seed=3 --dtype=") +
            dtype);
    for (const char *pattern : {"full", "causal", "sliding_window --set left=17", "dilated_window --set half=4",
                                "longformer --set half=9 --set globals=3", "dilated", "longnet"}) {
      std::string words = pattern;
      std::string name = words.substr(0, words.find(' ')), options = words.substr(name.size());
      CAPTURE(words);
      CAPTURE(dtype);
      Finished ran = place.run(name, inputs, "--target=cpu --verify --rows=40 --json" + options);
      REQUIRE_MESSAGE(ran.code == 0, ran.err);
      nlohmann::json json = nlohmann::json::parse(ran.out);
      CHECK(json["verify"]["ok"] == true);
      CHECK(json["verify"]["rows"] == 40);
      CHECK(json["verify"]["max_error"].get<double>() <= json["verify"]["allowed_error"].get<double>());
    }
  }
}

TEST_CASE("results have the promised shapes and the same bytes every time") {
  Workplace place;
  std::string inputs = place.inputs(
      "x.safetensors", "--seqlen=33 --seqlen-k=20 --heads=4 --kv-heads=2 --head-dim=16 --value-dim=24 --batch=2");
  REQUIRE(place.run("causal", inputs, "--target=cpu").code == 0);
  std::string first = contents(place.path("out.safetensors"));
  auto file = SafetensorsFile::open(place.path("out.safetensors"));
  REQUIRE(file.isOk());
  CHECK(file->entries().at("out").shape == std::vector<int64_t>{2, 33, 4, 24});
  CHECK(file->entries().at("out").dtype == DType::bf16);
  CHECK(file->entries().at("lse").shape == std::vector<int64_t>{2, 4, 33});
  CHECK(file->entries().at("lse").dtype == DType::fp32);
  REQUIRE(place.run("causal", inputs, "--target=cpu").code == 0);
  CHECK(contents(place.path("out.safetensors")) == first);
  REQUIRE(place.run("causal", inputs, "--target=cpu --scale=0.5").code == 0);
  CHECK(contents(place.path("out.safetensors")) != first);
}

TEST_CASE("make-inputs gives the same bytes for the same seed") {
  Workplace place;
  std::string a = contents(place.inputs("a", "--seqlen=5 --heads=2 --head-dim=8 --seed=4"));
  CHECK(contents(place.inputs("b", "--seqlen=5 --heads=2 --head-dim=8 --seed=4")) == a);
  CHECK(contents(place.inputs("c", "--seqlen=5 --heads=2 --head-dim=8 --seed=5")) != a);
  CHECK(contents(place.inputs("d", "--seqlen=5 --heads=2 --head-dim=8 --seed=4 --scale=3")) != a);
}

TEST_CASE("extreme scores verify on the CPU") {
  Workplace place;
  for (const char *scores :
       {"--scale=10", "--spikes=16", "--spikes=16 --spike-value=-1e4", "--minus-inf=1-63", "--minus-inf=200-299"})
    for (const char *pattern : {"full", "causal", "sliding_window --set left=250"}) {
      CAPTURE(scores);
      CAPTURE(pattern);
      std::string inputs =
          place.inputs("x", std::string("--seqlen=300 --heads=2 --kv-heads=1 --head-dim=64 --dtype=bf16 ") + scores);
      std::string words = pattern, name = words.substr(0, words.find(' '));
      Finished ran = place.run(name, inputs, "--target=cpu --verify --rows=100000" + words.substr(name.size()));
      CHECK_MESSAGE(ran.code == 0, ran.err);
    }
}

TEST_CASE("extreme scores that cannot be made are refused") {
  Workplace place;
  std::string make = "make-inputs --seqlen=64 --heads=1 --head-dim=64 -o " + place.path("out.safetensors");
  checkRefused(place, place.heddle(make + " --minus-inf=5"), 2, "expected FIRST-LAST, got '5'");
  checkRefused(place, place.heddle(make + " --minus-inf=1-64"), 1, "expected keys within 0-63, got 1-64");
  checkRefused(place, place.heddle(make + " --minus-inf=1-2 --dtype=fp16"), 1, "bf16 or fp32");
  checkRefused(place, place.heddle(make + " --spikes=1 --spike-value=1e10 --dtype=fp16"), 1, "beyond fp16");
  checkRefused(place, place.heddle(make + " --spikes=-1"), 2, "--spikes");
}

TEST_CASE("empty sequences are results, not errors") {
  Workplace place;
  for (const char *sizes : {"--seqlen=0 --seqlen-k=4", "--seqlen=4 --seqlen-k=0"}) {
    CAPTURE(sizes);
    Finished ran =
        place.run("causal", place.inputs("x", std::string(sizes) + " --heads=2 --head-dim=8"), "--target=cpu --verify");
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
}

TEST_CASE("wrong tensors are refused by name") {
  Workplace place;
  auto tensors = [&](HostTensor q, HostTensor k, HostTensor v) {
    REQUIRE(writeSafetensors(place.path("x"), {{"q", &q}, {"k", &k}, {"v", &v}}).isOk());
    return place.run("causal", place.path("x"), "--target=cpu");
  };
  auto zeros = [](DType dtype, std::vector<int64_t> shape) { return HostTensor::zeros(dtype, std::move(shape)); };
  HostTensor good = zeros(DType::bf16, {1, 8, 4, 16});
  checkRefused(place, tensors(good, zeros(DType::bf16, {1, 8, 3, 16}), zeros(DType::bf16, {1, 8, 3, 16})), 1, "3");
  checkRefused(place, tensors(good, zeros(DType::bf16, {1, 8, 4, 32}), good), 1, "k: size of dim: expected 16, got 32");
  checkRefused(place, tensors(good, good, zeros(DType::fp32, {1, 8, 4, 16})), 1,
               "v: dtype: expected bf16 as q, got fp32");
  checkRefused(place, tensors(zeros(DType::bf16, {8, 4, 16}), good, good), 1, "'q'");
  checkRefused(place, tensors(good, good, zeros(DType::bf16, {1, 9, 4, 16})), 1, "v: size of row: expected 8, got 9");
}

TEST_CASE("files that are missing, cut short or unwritable are refused") {
  Workplace place;
  std::string inputs = place.inputs("x", "--seqlen=16 --heads=2 --head-dim=16");
  checkRefused(place, place.run("causal", place.path("nothing"), "--target=cpu"), 1, "nothing");
  std::string whole = contents(inputs);
  std::ofstream(place.path("short"), std::ios::binary) << whole.substr(0, whole.size() - 7);
  checkRefused(place, place.run("causal", place.path("short"), "--target=cpu"), 1, "short");
  checkRefused(place, place.run("no_such_pattern", inputs, "--target=cpu"), 2, "no_such_pattern");
  Finished unwritable = place.heddle("run " + test::places().patterns + "/causal.mlir --inputs=" + inputs +
                                     " --output=" + place.path("no/such/folder/y") + " --target=cpu");
  CHECK(unwritable.code == 3);
  CHECK(unwritable.err.find("no/such/folder") != std::string::npos);
}

TEST_CASE("an existing result survives a failing run") {
  Workplace place;
  std::string inputs = place.inputs("x", "--seqlen=16 --heads=2 --head-dim=16");
  std::ofstream(place.path("out.safetensors")) << "mine";
  CHECK(place.run("causal", place.path("nothing"), "--target=cpu").code == 1);
  CHECK(place.run("sliding_window", inputs, "--target=cpu --set left=-1").code == 1);
  CHECK(contents(place.path("out.safetensors")) == "mine");
}

TEST_CASE("wrong options are usage errors, wrong sizes are input errors") {
  Workplace place;
  std::string inputs = place.inputs("x", "--seqlen=16 --heads=2 --head-dim=16");
  checkRefused(place, place.run("causal", inputs, "--target=tpu"), 2, "tpu");
  checkRefused(place, place.run("causal", inputs, "--target=cpu --scale=abc"), 2, "abc");
  checkRefused(place, place.run("causal", inputs, "--target=cpu --rows=0"), 2, "0");
  checkRefused(place, place.run("causal", inputs, "--target=cpu --q-origin=3"), 2, "q_origin");
  checkRefused(place, place.run("causal", inputs, ""), 2, "--target");
  checkRefused(place, place.run("sliding_window", inputs, "--target=cpu --set wdith=3"), 2, "left");
}

TEST_CASE("q_origin given is asked for, and used") {
  Workplace place;
  std::string inputs = place.inputs("x", "--seqlen=4 --seqlen-k=32 --heads=2 --head-dim=16");
  std::ofstream(place.path("p.mlir"))
      << "attn.pattern @p() q_origin(given) {\n  %m = attn.causal\n  attn.softmax union(%m)\n}\n";
  std::string run = "run " + place.path("p.mlir") + " --inputs=" + inputs +
                    " --output=" + place.path("out.safetensors") + " --target=cpu --verify";
  checkRefused(place, place.heddle(run), 2, "--q-origin");
  Finished ran = place.heddle(run + " --q-origin=28");
  CHECK_MESSAGE(ran.code == 0, ran.err);
}

TEST_CASE("without a GPU the cuda target says so") {
  Workplace place;
  std::string inputs = place.inputs("x", "--seqlen=16 --heads=2 --head-dim=64");
  Finished ran = place.heddle("run " + test::places().patterns + "/causal.mlir --inputs=" + inputs +
                                  " --output=" + place.path("out.safetensors") + " --target=cuda",
                              "HEDDLE_CUDA_DRIVER_LIBRARY=/no/such/driver.so");
  checkRefused(place, ran, 3, "driver");
}
