#include "compiler/Tools/KeyLayout.h"
#include "compiler/Tools/Options.h"
#include "runtime/Core/SequenceChecks.h"

#include <CLI/CLI.hpp>

#include <map>

namespace heddle::cli {

static const std::map<std::string, KeyPlaces> kNames = {{"pages", KeyPlaces::pages},
                                                        {"lists", KeyPlaces::lists},
                                                        {"rows", KeyPlaces::rows},
                                                        {"indices", KeyPlaces::indices}};

const char *keyPlacesName(KeyPlaces places) {
  for (const auto &[name, value] : kNames)
    if (value == places)
      return name.c_str();
  return "";
}

void KeyLayout::add(CLI::App &command) {
  command
      .add_option("--keys", places,
                  "Of --kind=decode, how keys lie: in pages, in pages of which each kv head has a list of its own "
                  "(lists), in ragged rows (rows), or in pages of tables behind each other (indices) [pages]")
      ->type_name("pages|lists|rows|indices")
      ->transform(CLI::Transformer(kNames).description(""));
  addCount(command, "--page-size", pageSize, "N", "Of --kind=decode: keys of a page; pages lie in random order")
      ->check(CLI::Range(int64_t(1), kMostKeysOfPage))
      ->capture_default_str();
}

AttentionSizes KeyLayout::sizesWith(AttentionSizes sizes) const {
  sizes.sequences = sizes.batch;
  if (places == KeyPlaces::rows) {
    sizes.pages = 1, sizes.pageSize = sizes.batch * sizes.seqlenK, sizes.maxPages = 0;
    return sizes;
  }
  sizes.tables = places == KeyPlaces::lists ? sizes.kvHeads : 1;
  sizes.pageSize = pageSize;
  sizes.maxPages = (sizes.seqlenK + pageSize - 1) / pageSize;
  sizes.pages = sizes.tables * sizes.batch * sizes.maxPages;
  return sizes;
}

std::vector<Role> KeyLayout::roles() const {
  if (places == KeyPlaces::indices)
    return {Role::kvIndptr};
  return places == KeyPlaces::rows ? std::vector<Role>{Role::cuSeqlensK} : std::vector<Role>{};
}

} // namespace heddle::cli
