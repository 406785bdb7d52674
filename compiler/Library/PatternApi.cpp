// Patterns in the C interface, and calls on the CPU.
#include "compiler/Library/CompiledPattern.h"
#include "compiler/Library/HostCall.h"
#include "runtime/Api/Handles.h"
#include "runtime/Core/VersionedStruct.h"

#include <cstddef>

using namespace heddle;

namespace {

Status openPattern(const std::string &text, const char *label, const char *name, heddle_pattern **pattern) {
  HEDDLE_ASSIGN(std::shared_ptr<CompiledPattern> made, CompiledPattern::create(text, label, name ? name : ""));
  *pattern = new heddle_pattern{std::move(made)};
  return {};
}

/// The kind of calls on q, k and v. The arguments name the gradients of others.
Result<KindText> kindOf(const char *what, const char *given) {
  HEDDLE_ASSIGN(const KindText text, KindText::parse(given ? given : "forward"));
  if (text.kind.find(Role::q) && text.kind.gradientsOf.empty())
    return text;
  std::string known;
  for (const Kind &other : Kind::all())
    if (other.find(Role::q))
      known += (known.empty() ? "" : ", ") + other.name();
  return Status::unsupported(std::string(what) + ": kind: expected one of " + known + ", got " + text.str());
}

} // namespace

extern "C" {

heddle_status heddle_pattern_parse(const char *text, const char *label, const char *name, heddle_pattern **pattern) {
  return guarded([&]() -> Status {
    if (!text || !pattern)
      return missing("parse pattern", text ? "pattern" : "text");
    return openPattern(text, label ? label : "pattern", name, pattern);
  });
}

heddle_status heddle_pattern_read(const char *path, const char *name, heddle_pattern **pattern) {
  return guarded([&]() -> Status {
    if (!path || !pattern)
      return missing("read pattern", path ? "pattern" : "path");
    HEDDLE_ASSIGN(std::string text, PatternFile::readText(path));
    return openPattern(text, path, name, pattern);
  });
}

heddle_status heddle_pattern_get_info(const heddle_pattern *pattern, heddle_pattern_info *info) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("pattern info", "pattern", pattern));
    if (!info)
      return missing("pattern info", "info");
    return writeVersioned("pattern info", pattern->pattern->info(), offsetof(heddle_pattern_info, name), *info);
  });
}

heddle_status heddle_pattern_get_argument(const heddle_pattern *pattern, int32_t index,
                                          heddle_pattern_argument *argument) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("pattern argument", "pattern", pattern));
    if (!argument)
      return missing("pattern argument", "argument");
    const std::vector<heddle_pattern_argument> &all = pattern->pattern->arguments();
    if (index < 0 || size_t(index) >= all.size())
      return Status::invalidArgument("pattern argument: index: expected 0 to " +
                                     std::to_string(int64_t(all.size()) - 1) + ", got " + std::to_string(index));
    return writeVersioned("pattern argument", all[size_t(index)], offsetof(heddle_pattern_argument, name), *argument);
  });
}

heddle_status heddle_pattern_part(const heddle_pattern *pattern, heddle_pattern **part) {
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen("pattern of parts", "pattern", pattern));
    if (!part)
      return missing("pattern of parts", "part");
    HEDDLE_ASSIGN(std::shared_ptr<CompiledPattern> made, pattern->pattern->part());
    *part = new heddle_pattern{std::move(made)};
    return {};
  });
}

void heddle_pattern_close(heddle_pattern *pattern) { closeHandle(pattern); }

heddle_status heddle_cpu_run(const heddle_pattern *pattern, const char *kind, const heddle_attention_args *args,
                             int32_t threads) {
  constexpr const char *what = "call on the CPU";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "pattern", pattern));
    if (!args)
      return missing(what, "args");
    if (threads < 0)
      return Status::invalidArgument(std::string(what) + ": threads: expected 0 or more, got " +
                                     std::to_string(threads));
    HEDDLE_ASSIGN(const KindText known, kindOf(what, kind));
    return runOnHost(known, *pattern->pattern, *args, threads);
  });
}

heddle_status heddle_cpu_check(const heddle_pattern *pattern, const char *kind, const heddle_attention_args *args) {
  constexpr const char *what = "check on the CPU";
  return guarded([&]() -> Status {
    HEDDLE_TRY(checkOpen(what, "pattern", pattern));
    if (!args)
      return missing(what, "args");
    HEDDLE_ASSIGN(const KindText known, kindOf(what, kind));
    return checkOnHost(known, *pattern->pattern, *args);
  });
}

} // extern "C"
