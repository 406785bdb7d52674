#include "codegen/Nvrtc/NvrtcLibrary.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace heddle {
namespace {

namespace fs = std::filesystem;

// Newest first; the plain name is the link that a development package adds.
constexpr const char *kFileNames[] = {"libnvrtc.so.13", "libnvrtc.so", "libnvrtc.so.12"};
// Where the vendor's Python wheels keep their libraries.
constexpr const char *kWheelFolders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

void addFolderAndWheels(std::vector<std::string> &folders, const fs::path &folder) {
  folders.push_back(folder.string());
  for (const char *inside : kWheelFolders)
    folders.push_back((folder / inside).string());
}

fs::path runningProgram() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

// The library that holds this function, or the program where it is linked into one.
fs::path ownBinary() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&runningProgram), &info) || !info.dli_fname)
    return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error);
}

// The files to try: every place for the newest version before any place for an older one. The place
// "" stands for the loader's path, where existence cannot be asked.
std::vector<std::string> candidatesIn(const std::vector<std::string> &places) {
  std::vector<std::string> files;
  std::error_code error;
  for (const char *name : kFileNames)
    for (const std::string &place : places)
      if (const fs::path file = fs::path(place) / name; place.empty() || fs::exists(file, error))
        files.push_back(file.string());
  return files;
}

constexpr const char *kHowToGet =
    "to get it: install the CUDA 13 toolkit and set CUDA_HOME, or `pip install --target DIR nvidia-cuda-nvrtc` and "
    "set HEDDLE_NVRTC_LIBRARY to DIR/nvidia/cu13/lib";

template <class Function> bool take(void *handle, const char *name, Function &entry) {
  entry = reinterpret_cast<Function>(dlsym(handle, name));
  return entry != nullptr;
}

} // namespace

NvrtcSearch NvrtcSearch::fromEnvironment() {
  NvrtcSearch search;
  search.library = environment("HEDDLE_NVRTC_LIBRARY");
  if (const std::string home = environment("CUDA_HOME"); !home.empty())
    search.folders.push_back(home + "/lib64");
  for (const fs::path &binary : {ownBinary(), runningProgram()})
    search.addFoldersNear(binary.string());
  search.folders.push_back("/usr/local/cuda/lib64");
  return search;
}

void NvrtcSearch::addFoldersNear(const std::string &binary) {
  if (binary.empty())
    return;
  const fs::path beside = fs::path(binary).parent_path();
  const fs::path above = beside.parent_path();
  // beside an installed libheddle, or from bin/
  std::vector<std::string> near = {(beside / "heddle" / "nvrtc").string()};
  for (const char *libraries : {HEDDLE_INSTALL_LIBDIR, "lib"})
    near.push_back((above / libraries / "heddle" / "nvrtc").string());
  addFolderAndWheels(near, beside / "nvrtc");
  addFolderAndWheels(near, above / "nvrtc");
  near.push_back((above / "lib").string());
  for (const char *inside : kWheelFolders)
    near.push_back((above.parent_path() / inside).string());
  for (const std::string &folder : near)
    if (std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(folder);
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::open(const NvrtcSearch &search) {
  return search.library.empty() ? openFirst(search) : openNamed(search.library);
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::openNamed(const std::string &name) {
  const std::string who = "HEDDLE_NVRTC_LIBRARY: ";
  std::error_code error;
  std::vector<std::string> files = {name};
  if (fs::is_directory(name, error))
    files = candidatesIn({name});
  if (files.empty())
    return Status::unavailable(who + "no libnvrtc in " + name + "; " + kHowToGet);
  auto library = load(files.front());
  if (library)
    return library;
  return Status::unavailable(who + library.status().message() + "; " + kHowToGet);
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::openFirst(const NvrtcSearch &search) {
  std::string tried;
  auto note = [&](const std::string &what) { tried += (tried.empty() ? "" : ", ") + what; };
  for (const std::string &folder : search.folders)
    if (candidatesIn({folder}).empty())
      note(folder);
  std::vector<std::string> places = search.folders;
  if (search.askLoader)
    places.emplace_back();
  for (const std::string &file : candidatesIn(places)) {
    auto library = load(file);
    if (library)
      return library;
    note(library.status().message());
  }
  return Status::unavailable("NVRTC not found; tried " + tried + "; " + kHowToGet);
}

const Result<std::shared_ptr<const NvrtcLibrary>> &NvrtcLibrary::shared() {
  static const auto library = open(NvrtcSearch::fromEnvironment());
  return library;
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::load(const std::string &file) {
  void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return Status::unavailable(dlerror());
  std::shared_ptr<NvrtcLibrary> library(new NvrtcLibrary);
  library->file = file;
  Status status = library->resolve(handle);
  if (status.isOk())
    status = library->query();
  if (!status.isOk()) {
    dlclose(handle);
    return status;
  }
  library->loadBuiltins();
  return std::shared_ptr<const NvrtcLibrary>(std::move(library));
}

Status NvrtcLibrary::resolve(void *handle) {
  NvrtcFunctions &f = entries;
  const char *missing = nullptr;
  auto need = [&](const char *name, auto &entry) {
    if (!take(handle, name, entry) && !missing)
      missing = name;
  };
  need("nvrtcGetErrorString", f.getErrorString);
  need("nvrtcVersion", f.version);
  need("nvrtcGetNumSupportedArchs", f.getNumSupportedArchs);
  need("nvrtcGetSupportedArchs", f.getSupportedArchs);
  need("nvrtcCreateProgram", f.createProgram);
  need("nvrtcDestroyProgram", f.destroyProgram);
  need("nvrtcCompileProgram", f.compileProgram);
  need("nvrtcGetPTXSize", f.getPtxSize);
  need("nvrtcGetPTX", f.getPtx);
  need("nvrtcGetCUBINSize", f.getCubinSize);
  need("nvrtcGetCUBIN", f.getCubin);
  need("nvrtcGetProgramLogSize", f.getLogSize);
  need("nvrtcGetProgramLog", f.getLog);
  if (missing)
    return Status::unavailable(file + ": no function " + missing);
  return {};
}

Status NvrtcLibrary::query() {
  int count = 0;
  if (entries.version(&major, &minor) != 0 || entries.getNumSupportedArchs(&count) != 0)
    return Status::unavailable(file + ": cannot tell its version");
  capabilities.resize(static_cast<size_t>(count));
  if (entries.getSupportedArchs(capabilities.data()) != 0)
    return Status::unavailable(file + ": cannot list its architectures");
  std::sort(capabilities.begin(), capabilities.end());
  return {};
}

std::string NvrtcLibrary::loadedFile() const {
  Dl_info info;
  const void *symbol = reinterpret_cast<const void *>(entries.version);
  return dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : file;
}

// NVRTC opens its companion by bare name on the first compilation. Loading it from beside the
// library makes that find it outside the loader's path too; where it is not beside, the loader
// decides and the first compilation reports a failure.
void NvrtcLibrary::loadBuiltins() const {
  std::error_code error;
  const fs::path real = fs::canonical(loadedFile(), error);
  const fs::path builtins = real.parent_path() / ("libnvrtc-builtins.so." + versionText());
  if (!error && fs::exists(builtins, error))
    dlopen(builtins.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

} // namespace heddle
