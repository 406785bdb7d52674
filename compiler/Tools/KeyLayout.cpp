#include "compiler/Tools/KeyLayout.h"
#include "compiler/Tools/Options.h"
#include "runtime/Core/SequenceChecks.h"

#include <CLI/CLI.hpp>

#include <map>

namespace heddle::cli {

void addKeyLayout(CLI::App &command, KeyLayout &layout) {
  std::map<std::string, KeyPlaces> names;
  std::string type;
  for (KeyPlaces places : allKeyPlaces()) {
    names[keyPlacesName(places)] = places;
    type += (type.empty() ? "" : "|") + std::string(keyPlacesName(places));
  }
  command
      .add_option("--keys", layout.places,
                  "Of --kind=decode, how keys lie: in pages, in pages of which each kv head has a list of its own "
                  "(lists), in ragged rows (rows), or in pages of tables behind each other (indices) [pages]")
      ->type_name(type)
      ->transform(CLI::Transformer(names).description(""));
  addCount(command, "--page-size", layout.pageSize, "N", "Of --kind=decode: keys of a page; pages lie in random order")
      ->check(CLI::Range(int64_t(1), kMostKeysOfPage))
      ->capture_default_str();
}

void PagesOptions::add(CLI::App &command, bool several) {
  const auto areLengths = [](const std::string &text) {
    return LengthRange::parse(text) ? "" : "expected N or LEAST-MOST keys, the most from 1 to 2^30, got '" + text + "'";
  };
  CLI::Option *option =
      addValue(command, "--lengths", lengths, "N|LEAST-MOST",
               std::string("Of --kind=decode: keys of each sequence, or between which numbers they are at random") +
                   (several ? "; several, separated by commas" : ""))
          ->check(areLengths);
  if (several)
    option->delimiter(',');
  else
    option->expected(1);
  addKeyLayout(command, layout);
}

std::vector<ServedKeys> PagesOptions::keys() const {
  std::vector<ServedKeys> all;
  for (const std::string &text : lengths)
    all.push_back({layout, *LengthRange::parse(text)});
  return all;
}

Status PagesOptions::check(const Kind &kind, int64_t seqlenK) const {
  if (!kind.hasPages())
    return isGiven() ? Status::invalidArgument("--lengths is of --kind=decode, whose calls have sequences") : Status();
  if (!isGiven())
    return Status::invalidArgument("--kind=" + kind.name() + ": --lengths is required: how many keys sequences have");
  return seqlenK ? Status::invalidArgument("--seqlen-k: --lengths says how many keys sequences have") : Status();
}

Result<ServedKeys> PagesOptions::keysOf(const Kind &kind, int64_t seqlenK) const {
  HEDDLE_TRY(check(kind, seqlenK));
  return isGiven() ? keys().front() : ServedKeys();
}

} // namespace heddle::cli
