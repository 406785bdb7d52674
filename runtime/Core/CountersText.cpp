#include "runtime/Core/CountersText.h"

#include "runtime/Core/DriftWatch.h"
#include "runtime/Core/FieldText.h"
#include "runtime/Core/Status.h"

namespace heddle {
namespace {

// The value of a label between its quotes.
void appendEscaped(std::string &text, const std::string &value) {
  for (const char letter : value) {
    if (letter == '\\' || letter == '"' || letter == '\n')
      text += '\\';
    text += letter == '\n' ? 'n' : letter;
  }
}

class Writer {
public:
  // A family of metrics; unit: what the name ends with, or null. `type` is the suffix of its counters' lines, too.
  void begin(const char *family, const char *type, const char *unit, const char *help) {
    name = std::string("heddle_") + family;
    isCounter = type[0] == 'c';
    text += "# TYPE " + name + " " + type + "\n";
    if (unit)
      text += "# UNIT " + name + " " + unit + "\n";
    text += "# HELP " + name + " " + help + "\n";
  }
  void line(const std::string &value, const char *suffix = "") {
    text += name + (isCounter ? "_total" : suffix);
    if (!labels.empty())
      text += "{" + labels + "}";
    text += " " + value + "\n";
  }
  void label(const char *key, const std::string &value) {
    labels += (labels.empty() ? "" : ",") + std::string(key) + "=\"";
    appendEscaped(labels, value);
    labels += '"';
  }
  void noLabels() { labels.clear(); }
  std::string text;

private:
  std::string name, labels;
  bool isCounter = false;
};

// Of the problem that is slowest.
double slowness(const KernelRow &row) {
  double most = 1;
  heddle_drift drift;
  for (DriftWatch *watch = row.watches.load(std::memory_order_acquire); watch; watch = watch->next())
    if (watch->isSlow() && watch->describe(drift) && drift.factor > most)
      most = drift.factor;
  return most;
}

std::string textOf(const Count &count) { return std::to_string(count.get()); }

// One family whose lines are those of kernels.
template <class F> void perKernel(Writer &writer, const Counters &counters, const F &lines) {
  for (int i = 0; i < counters.rowCount(); ++i) {
    const KernelRow &row = counters.row(i);
    writer.noLabels();
    writer.label("kernel", row.kernel);
    writer.label("pattern", row.pattern);
    writer.label("kind", row.kind);
    writer.label("device", row.device);
    writer.label("bus", row.bus);
    lines(row);
  }
  writer.noLabels();
}

void appendKernels(Writer &writer, const Counters &counters) {
  writer.begin("launches", "counter", nullptr, "Calls that were launched.");
  perKernel(writer, counters, [&](const KernelRow &row) { writer.line(textOf(row.launches)); });
  writer.begin("kept_pairs", "counter", nullptr, "Pairs that launched calls keep, as far as they were told.");
  perKernel(writer, counters, [&](const KernelRow &row) { writer.line(textOf(row.pairs)); });
  writer.begin("kernel_seconds", "summary", "seconds", "Times of launches on the GPU, of those that were sampled.");
  perKernel(writer, counters, [&](const KernelRow &row) {
    writer.line(textOf(row.samples.times), "_count");
    writer.line(fieldValueText(row.samples.seconds()), "_sum");
  });
  writer.begin("drifts", "counter", nullptr, "Times that a kernel became slower than its stored time.");
  perKernel(writer, counters, [&](const KernelRow &row) { writer.line(textOf(row.drifts)); });
  writer.begin("drift_ratio", "gauge", "ratio",
               "How many times its stored time a kernel takes while it is slow, else 1.");
  perKernel(writer, counters, [&](const KernelRow &row) { writer.line(fieldValueText(slowness(row))); });
}

void appendFound(Writer &writer, const Counters &counters) {
  writer.begin("kernels_found", "counter", nullptr, "Questions for a kernel, by how well the answer matched.");
  int64_t sums[kMatchKinds] = {};
  for (int i = 0; i < counters.rowCount(); ++i)
    for (int match = 0; match < kMatchKinds; ++match)
      sums[match] += counters.row(i).found[match].get();
  sums[int(MatchKind::none)] += counters.notFound.get();
  for (int match = 0; match < kMatchKinds; ++match) {
    writer.noLabels();
    writer.label("match", matchKindName(MatchKind(match)));
    writer.line(std::to_string(sums[match]));
  }
  writer.noLabels();
}

void appendRefusals(Writer &writer, const Counters &counters) {
  writer.begin("refusals", "counter", nullptr, "Failing calls of the C interface, by their code.");
  for (int code = 1; code < kStatusCodes; ++code) {
    writer.noLabels();
    writer.label("reason", statusCodeName(StatusCode(code)));
    writer.line(textOf(counters.refusals[code]));
  }
  writer.noLabels();
}

struct Single {
  const char *family, *type, *unit, *help;
  std::string value;
};

} // namespace

std::string metricsText(const Counters &counters) {
  Writer writer;
  appendKernels(writer, counters);
  appendFound(writer, counters);
  appendRefusals(writer, counters);
  const Single singles[] = {
      {"compilations", "counter", nullptr, "Kernels that were compiled.", textOf(counters.compilations.times)},
      {"compilation_seconds", "counter", "seconds", "Time spent on them.",
       fieldValueText(counters.compilations.seconds())},
      {"searches", "counter", nullptr, "Searches for a faster kernel.", textOf(counters.searches.times)},
      {"search_seconds", "counter", "seconds", "Time spent on them.", fieldValueText(counters.searches.seconds())},
      {"store_waits", "counter", nullptr, "Times that a database was held by another process.",
       textOf(counters.storeWaits.times)},
      {"store_wait_seconds", "counter", "seconds", "Time spent on them.",
       fieldValueText(counters.storeWaits.seconds())},
      {"store_retries", "counter", nullptr, "Attempts to get hold of it again.", textOf(counters.storeRetries)},
      {"workspace_bytes", "gauge", "bytes", "Workspace of calls that are prepared.",
       std::to_string(counters.workspace.get())},
      {"workspace_peak_bytes", "gauge", "bytes", "The most workspace of prepared and launched calls.",
       std::to_string(counters.workspace.highest())},
      {"arena_bytes", "gauge", "bytes", "Memory that arenas have given out.", std::to_string(counters.arenas.get())},
      {"arena_peak_bytes", "gauge", "bytes", "The most of it.", std::to_string(counters.arenas.highest())},
      {"lost_samples", "counter", nullptr, "Times that were not taken, as too many were under way.",
       textOf(counters.lostSamples)},
  };
  for (const Single &single : singles) {
    writer.begin(single.family, single.type, single.unit, single.help);
    writer.line(single.value);
  }
  return writer.text + "# EOF\n";
}

} // namespace heddle
