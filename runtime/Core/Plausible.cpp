#include "runtime/Core/Plausible.h"

#include <cstdio>
#include <limits>

namespace heddle {
namespace {

std::string got(const char *expected, double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return std::string("expected ") + expected + ", got " + text;
}

// False for NaN, too.
bool isWithin(double number, double least, double most) { return number >= least && number <= most; }

std::string orTime(double us) { return us == 0 ? "" : wrongTime(us); }

std::string inField(const char *field, const std::string &wrong) {
  return wrong.empty() ? "" : std::string(field) + ": " + wrong;
}

template <class... Texts> std::string firstOf(const Texts &...texts) {
  std::string first;
  ((first = first.empty() ? texts : first), ...);
  return first;
}

} // namespace

double mostErrorOf(std::string_view kind) {
  constexpr double kOfRows = 100, kOfPairs = 1e8;
  const Result<KindText> text = KindText::parse(kind);
  return kind.empty() || (text && !text->kind.gradientsOf.empty()) ? kOfPairs : kOfRows;
}

std::string wrongTime(double us) {
  return isWithin(us, kLeastLaunchUs, kDaySeconds * 1e6) ? "" : got("a time of 0.1 us to a day", us);
}

std::string wrongSeconds(double seconds) {
  return isWithin(seconds, 0, kDaySeconds) ? "" : got("0 to 86400 seconds", seconds);
}

std::string wrongError(double error, std::string_view kind) {
  const double most = mostErrorOf(kind);
  if (isWithin(error, 0, most))
    return {};
  char expected[64];
  std::snprintf(expected, sizeof expected, "an error of 0 to %g of a right result", most);
  return got(expected, error);
}

std::string wrongNumbers(const TrialNumbers &numbers, std::string_view outcome, std::string_view kind) {
  const bool isMeasured = outcome == "measured", isRight = isMeasured || outcome == "stopped";
  return firstOf(inField("median_us", isMeasured ? wrongTime(numbers.medianUs) : orTime(numbers.medianUs)),
                 inField("min_us", orTime(numbers.minUs)),
                 inField("max_error", isRight ? wrongError(numbers.maxError, kind) : std::string()),
                 inField("max_error", numbers.maxError < 0 ? got("0 or more", numbers.maxError) : std::string()),
                 inField("compile_seconds", wrongSeconds(numbers.compileSeconds)),
                 inField("power_watts", isWithin(numbers.powerWatts, 0, std::numeric_limits<double>::max())
                                            ? std::string()
                                            : got("0 or more", numbers.powerWatts)));
}

std::string wrongNumbers(const Trial &trial) { return wrongNumbers(trial, trial.outcome, trial.kind); }

std::string wrongNumbers(const Winner &winner) { return inField("median_us", orTime(winner.medianUs)); }

std::string wrongNumbers(const LinkRecord &links) {
  auto within = [](const char *field, const char *expected, double number, double least, double most) {
    return isWithin(number, least, most) ? std::string() : inField(field, got(expected, number));
  };
  return firstOf(within("gbps", "0.001 to 1e6", links.gbps, kLeastLinkGbps, kMostOfLinks),
                 within("latency_us", "0 to 1e6", links.latencyUs, 0, kMostOfLinks),
                 within("ranks", "2 or more", double(links.ranks), 2, kMostOfLinks),
                 within("hosts", "1 to as many as ranks", double(links.hosts), 1, double(links.ranks)));
}

} // namespace heddle
