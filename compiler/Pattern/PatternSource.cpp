#include "compiler/Pattern/PatternSource.h"
#include "compiler/Pattern/Suggest.h"
#include "runtime/Core/SafeText.h"

#include <algorithm>
#include <filesystem>

namespace heddle {

namespace fs = std::filesystem;

static constexpr std::string_view kLibraryPrefix = "library:", kExtension = ".mlir";
static constexpr size_t kMostNeighbours = 10000; // entries of a folder that are looked at for a name nearby

std::vector<std::string> libraryPatternNames() {
  std::vector<std::string> names;
  for (const EmbeddedFile &file : libraryPatterns())
    names.emplace_back(file.name.substr(0, file.name.size() - kExtension.size()));
  return names;
}

std::string PatternSource::origin() const {
  if (path.empty())
    return "of the library in this program";
  if (path == "-")
    return "from standard input";
  std::error_code ignored;
  return "the file " + fs::weakly_canonical(path, ignored).string();
}

static const EmbeddedFile *inLibrary(std::string_view name) {
  for (const EmbeddedFile &file : libraryPatterns())
    if (file.name.substr(0, file.name.size() - kExtension.size()) == name)
      return &file;
  return nullptr;
}

/// Pattern files of the folder that `path` is in, without their folder.
static std::vector<std::string> neighbours(const fs::path &path) {
  std::vector<std::string> names;
  std::error_code failed;
  size_t seen = 0;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end && seen < kMostNeighbours;
       entry.increment(failed), ++seen)
    if (entry->path().extension() == kExtension)
      names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// What was probably meant: a pattern of the library of that very name, a file nearby, or a library name nearby.
static std::string meant(const std::string &word) {
  const fs::path path = word;
  if (inLibrary(path.stem().string()))
    return path.stem().string();
  if (const std::string file = nearest(path.filename().string(), neighbours(path)); !file.empty())
    return (path.parent_path() / file).string();
  return nearest(path.stem().string(), libraryPatternNames());
}

static Status nothingCalled(const std::string &word) {
  const std::string name = word.rfind(kLibraryPrefix, 0) == 0 ? word.substr(kLibraryPrefix.size()) : word;
  const std::string best = meant(name);
  return Status::notFound(
      "no pattern '" + safeLine(word) + "'" + (best.empty() ? ": " : ", did you mean '" + best + "'?; ") +
      "there is neither such a file nor such a name in the library, which 'heddle help patterns' lists");
}

Result<PatternSource> findPattern(const std::string &word) {
  PatternSource source;
  std::string_view name = word;
  if (name.substr(0, kLibraryPrefix.size()) == kLibraryPrefix) {
    name.remove_prefix(kLibraryPrefix.size());
  } else {
    std::error_code failed;
    const fs::file_status found = fs::status(word, failed);
    if (word == "-" || (fs::exists(found) && !fs::is_directory(found))) {
      source.path = word;
      source.label = sourceName(word);
      return source;
    }
  }
  const EmbeddedFile *file = inLibrary(name);
  std::error_code ignored;
  if (!file && fs::is_directory(word, ignored))
    return Status::invalidArgument("cannot read pattern file '" + word + "': Is a directory");
  if (!file)
    return nothingCalled(word);
  source.label = std::string(kLibraryPrefix) + std::string(name);
  source.libraryText = file->text;
  return source;
}

} // namespace heddle
