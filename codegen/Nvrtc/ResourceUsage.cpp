// A cubin is an ELF64 file. Its section .nv.info lists attributes, each a format byte, an attribute
// byte and two bytes that are the value or, in the sized format, the length of the payload. The
// payload of the two attributes read here is the symbol's index and the value.
#include "codegen/Nvrtc/ResourceUsage.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <elf.h>

namespace heddle {
namespace {

constexpr uint8_t kSizedFormat = 0x04;
constexpr uint8_t kFrameSizeAttribute = 0x11;
constexpr uint8_t kRegisterCountAttribute = 0x2f;

std::string_view takeLine(std::string_view &text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// The number right before `unit`, 0 if the line does not have the unit.
int64_t numberBefore(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos)
    return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
    --begin;
  int64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + at, value);
  return value;
}

bool contains(std::string_view line, std::string_view what) { return line.find(what) != std::string_view::npos; }

template <class T> bool readAt(std::string_view bytes, uint64_t offset, T &value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    return false;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return true;
}

struct Section {
  std::string_view name;
  std::string_view bytes;
  uint32_t type;
};

std::string_view textAt(std::string_view table, uint64_t offset) {
  if (offset >= table.size())
    return {};
  const std::string_view rest = table.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

// All sections; empty when the headers do not fit the file.
std::vector<Section> readSections(std::string_view file) {
  Elf64_Ehdr header;
  if (!readAt(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
    return {};
  std::vector<Elf64_Shdr> headers(header.e_shnum);
  for (size_t i = 0; i < headers.size(); ++i)
    if (!readAt(file, header.e_shoff + i * sizeof(Elf64_Shdr), headers[i]))
      return {};
  auto bytesOf = [&](const Elf64_Shdr &section) {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > file.size() ||
        section.sh_size > file.size() - section.sh_offset)
      return std::string_view();
    return file.substr(section.sh_offset, section.sh_size);
  };
  if (header.e_shstrndx >= headers.size())
    return {};
  const std::string_view names = bytesOf(headers[header.e_shstrndx]);
  std::vector<Section> sections;
  for (const Elf64_Shdr &section : headers)
    sections.push_back({textAt(names, section.sh_name), bytesOf(section), section.sh_type});
  return sections;
}

const Section *findSection(const std::vector<Section> &sections, std::string_view name) {
  for (const Section &section : sections)
    if (section.name == name)
      return &section;
  return nullptr;
}

// Index of the function symbol called `entry`, or -1.
int64_t findSymbol(const std::vector<Section> &sections, std::string_view entry) {
  const Section *symbols = findSection(sections, ".symtab");
  const Section *names = findSection(sections, ".strtab");
  if (!symbols || !names)
    return -1;
  Elf64_Sym symbol;
  for (size_t i = 0; readAt(symbols->bytes, i * sizeof symbol, symbol); ++i)
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && textAt(names->bytes, symbol.st_name) == entry)
      return static_cast<int64_t>(i);
  return -1;
}

} // namespace

Result<ResourceUsage> parsePtxasLog(std::string_view log, std::string_view entry) {
  ResourceUsage usage;
  bool isEntry = false, isFound = false;
  const std::string compiling = "Compiling entry function '" + std::string(entry) + "'";
  while (!log.empty()) {
    const std::string_view line = takeLine(log);
    if (contains(line, "Compiling entry function"))
      isEntry = contains(line, compiling);
    if (!isEntry)
      continue;
    usage.stackFrameBytes += numberBefore(line, " bytes stack frame");
    usage.spillStoreBytes += numberBefore(line, " bytes spill stores");
    usage.spillLoadBytes += numberBefore(line, " bytes spill loads");
    if (!contains(line, "Used ") || !contains(line, " registers"))
      continue;
    isFound = true;
    usage.registers = numberBefore(line, " registers");
    usage.barriers = numberBefore(line, " barriers");
    usage.staticSharedBytes = numberBefore(line, " bytes smem");
  }
  if (!isFound)
    return Status::notFound("the ptxas log has no resources of '" + std::string(entry) + "'");
  return usage;
}

std::vector<EntrySpills> parseSpills(std::string_view log) {
  constexpr std::string_view kCompiling = "Compiling entry function '";
  std::vector<EntrySpills> all;
  while (!log.empty()) {
    const std::string_view line = takeLine(log);
    if (const size_t at = line.find(kCompiling); at != std::string_view::npos) {
      const std::string_view name = line.substr(at + kCompiling.size());
      all.push_back({std::string(name.substr(0, name.find('\''))), 0});
    } else if (!all.empty()) {
      all.back().bytes += numberBefore(line, " bytes spill stores") + numberBefore(line, " bytes spill loads");
    }
  }
  all.erase(std::remove_if(all.begin(), all.end(), [](const EntrySpills &each) { return each.bytes == 0; }), all.end());
  return all;
}

std::vector<CompilerNote> parseNotes(std::string_view log) {
  constexpr std::string_view kLoss = "Potential Performance Loss";
  std::vector<CompilerNote> notes;
  while (!log.empty()) {
    const std::string_view line = takeLine(log);
    const size_t open = line.find("(C75"), close = line.find(") ", open);
    const bool isCoded = open != std::string_view::npos && close == open + std::string_view("(C7512").size();
    if (!isCoded && !contains(line, kLoss))
      continue;
    CompilerNote note;
    note.code = isCoded ? line.substr(open + 1, close - open - 1) : "";
    note.text = isCoded ? line.substr(close + 2) : line;
    note.isLoss = contains(line, kLoss);
    if (std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(std::move(note));
  }
  return notes;
}

int64_t countWarpgroupProducts(std::string_view ptx) {
  constexpr std::string_view kProduct = "wgmma.mma_async.";
  int64_t count = 0;
  for (size_t at = ptx.find(kProduct); at != std::string_view::npos; at = ptx.find(kProduct, at + kProduct.size()))
    ++count;
  return count;
}

double ptxasMilliseconds(std::string_view log) {
  double total = 0;
  constexpr std::string_view kLabel = "Compile time = ";
  for (size_t at = log.find(kLabel); at != std::string_view::npos; at = log.find(kLabel, at + 1)) {
    double value = 0;
    std::from_chars(log.data() + at + kLabel.size(), log.data() + log.size(), value);
    total += value;
  }
  return total;
}

std::string withoutTimes(std::string_view log) {
  std::string kept;
  while (!log.empty()) {
    const std::string_view line = takeLine(log);
    if (!contains(line, "Compile time = ") && !line.empty())
      kept.append(line).append("\n");
  }
  return kept;
}

Result<ResourceUsage> readCubinUsage(std::string_view cubin, std::string_view entry) {
  const std::vector<Section> sections = readSections(cubin);
  const Section *info = findSection(sections, ".nv.info");
  if (!info)
    return Status::corrupt("cubin: expected an ELF64 file with a section .nv.info, got " +
                           std::to_string(cubin.size()) + " bytes without one");
  const int64_t symbol = findSymbol(sections, entry);
  ResourceUsage usage;
  bool isFound = false;
  uint16_t size = 0;
  for (uint64_t at = 0; readAt(info->bytes, at + 2, size); at += 4) {
    const auto format = static_cast<uint8_t>(info->bytes[at]);
    const auto attribute = static_cast<uint8_t>(info->bytes[at + 1]);
    if (format != kSizedFormat)
      continue;
    uint32_t payload[2];
    if (size >= sizeof payload && readAt(info->bytes, at + 4, payload) && payload[0] == symbol) {
      if (attribute == kRegisterCountAttribute)
        usage.registers = payload[1];
      if (attribute == kFrameSizeAttribute)
        usage.stackFrameBytes = payload[1];
      isFound |= attribute == kRegisterCountAttribute;
    }
    at += size;
  }
  if (!isFound)
    return Status::notFound("the cubin states no register count of '" + std::string(entry) + "'");
  return usage;
}

} // namespace heddle
