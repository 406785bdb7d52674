//===- store_files_test.cpp - files that are broken, foreign or in the wrong place ---===//
// Numbers in brackets are the promises of runtime/Store/Store.h.
#include "process_fixture.h"
#include "runtime/Core/FieldText.h"
#include "runtime/Store/Location.h"
#include "store_fixture.h"
#include "store_sql.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int64_t kNfs = 0x6969;

// A finalised store with one kernel and its bytes.
std::string makeStore(const std::string &path) {
  Store store = openStore(path, writing());
  KernelRecord record = someKernel("k1", "pattern-a", 20000);
  REQUIRE(store.publish(record, someWinner(record)).isOk());
  REQUIRE(store.finalise().isOk());
  return readFile(path);
}

StatusCode openCode(const std::string &path, StoreMode mode) {
  StoreOptions options;
  options.mode = mode;
  return Store::open(path, options).status().code();
}

StoreLookup find(const std::string &path, const LookupQuery &query) { return openStore(path, {}).lookup(query).take(); }

// True if the file or its kernel k1 is refused; what is read must be the original.
bool refusesOrReads(const Result<Store> &store, const std::string &cubin) {
  const Result<KernelRecord> record = store ? store->kernel("k1") : Result<KernelRecord>(store.status());
  CHECK((!record || record->cubin == cubin));
  return !record;
}

// Runs `work` in a child process and returns its exit code; 200 + signal if it was killed.
int inChild(const std::function<int()> &work) { return waitFor(startChild(work)); }

} // namespace

TEST_CASE("[3] foreign, newer, empty and short files are refused and stay as they are") {
  ScratchFolder folder;
  std::string good = makeStore(folder / "good.db");
  struct Case {
    const char *name;
    std::string bytes;
    StatusCode reading, writing;
  };
  std::string newer = good, foreign = good;
  newer[63] = 99;
  foreign[68] = 'X';
  std::vector<Case> cases = {
      {"text", "this is a text file, and a rather long one, so that it is longer than the header of a database file is",
       StatusCode::corrupt, StatusCode::corrupt},
      {"short", good.substr(0, 50), StatusCode::corrupt, StatusCode::corrupt},
      {"newer", newer, StatusCode::newer, StatusCode::newer},
      {"foreign", foreign, StatusCode::corrupt, StatusCode::corrupt},
      {"truncated", good.substr(0, good.size() / 2), StatusCode::corrupt, StatusCode::corrupt},
      {"empty", "", StatusCode::notFound, StatusCode::ok}};
  for (const Case &bad : cases) {
    std::string path = folder / bad.name;
    writeFile(path, bad.bytes);
    CHECK_MESSAGE(openCode(path, StoreMode::readOnly) == bad.reading, bad.name);
    CHECK_MESSAGE(openCode(path, StoreMode::immutable) == bad.reading, bad.name);
    CHECK_MESSAGE(openCode(path, StoreMode::readWrite) == bad.writing, bad.name);
    if (bad.writing != StatusCode::ok)
      CHECK_MESSAGE(readFile(path) == bad.bytes, bad.name);
  }
  CHECK(openCode(folder / "missing", StoreMode::readOnly) == StatusCode::notFound);
  CHECK(openCode(folder.path(), StoreMode::readOnly) == StatusCode::invalidArgument);
  CHECK(Store::open(folder / "newer").status().message().find("version 99") != std::string::npos);
}

TEST_CASE("[3] a database of another application is refused and stays as it is") {
  ScratchFolder folder;
  std::string path = folder / "other.db";
  runSql(path, "CREATE TABLE recipes (name TEXT)");
  std::string before = readFile(path);
  CHECK(openCode(path, StoreMode::readWrite) == StatusCode::corrupt);
  CHECK(readFile(path) == before);
}

TEST_CASE("[4] a changed byte of a kernel is noticed by lookup and verify") {
  ScratchFolder folder;
  std::string path = folder / "a.db", bytes = makeStore(path);
  size_t at = bytes.find("11111111111111111111");
  REQUIRE(at != std::string::npos);
  bytes[at + 3] = '2';
  writeFile(path, bytes);
  Store store = openStore(path, {});
  Result<StoreLookup> found = store.lookup(WinnerKey(someFamily(), {3, 2, 1}, someDevice()));
  CHECK(found.status().code() == StatusCode::corrupt);
  CHECK(found.status().message().find("k1") != std::string::npos);
  Result<VerifyReport> report = store.verify();
  REQUIRE(report.isOk());
  REQUIRE(report->problems.size() == 1);
  CHECK(report->problems[0].find("checksum") != std::string::npos);
}

TEST_CASE("[4] the code of another kernel in place of one's own is noticed, and never loaded") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  {
    Store store = openStore(path, writing());
    KernelRecord first = someKernel("k1"), second = someKernel("k2"), half = someKernel("k3");
    half.headDim = half.valueDim = 128;
    REQUIRE(store.publish(first, someWinner(first)).isOk());
    REQUIRE(store.publish(second, someWinner(second, {9, 9, 1})).isOk());
    REQUIRE(store.publish(half, someWinner(half)).isOk());
    REQUIRE(store.finalise().isOk());
  }
  LookupQuery query(WinnerKey(someFamily(), {3, 2, 1}, someDevice()));
  std::filesystem::copy_file(path, folder / "b.db");
  runSql(path,
         "UPDATE kernels SET cubin = (SELECT cubin FROM kernels WHERE content_key = 'k2') WHERE content_key = 'k1'");
  CHECK(openStore(path, {}).lookup(query).status().code() == StatusCode::corrupt);
  CHECK(openStore(path, {}).verify()->problems.size() == 1);
  // The winner of one head dim leads to the kernel of another: every row is as somebody published it.
  Winner misled = find(folder / "b.db", query).winner;
  misled.contentKey = "k3";
  runSql(folder / "b.db", "UPDATE winners SET content_key = 'k3', checksum = '" + fieldDigest(misled) +
                              "' WHERE head_dim = 64 AND work_per_sm = 3");
  Store store = openStore(folder / "b.db", {});
  Status refused = store.lookup(query).status();
  CHECK(refused.code() == StatusCode::corrupt);
  CHECK_MESSAGE(refused.message().find("names kernel k3, which computes something else") != std::string::npos,
                refused.message());
  REQUIRE(store.verify()->problems.size() == 1);
  CHECK(store.verify()->problems[0].find("names kernel k3") != std::string::npos);
}

TEST_CASE("[3] a file cut at any length is refused or read right, never changed") {
  ScratchFolder folder;
  std::string path = folder / "a.db", good = makeStore(path);
  std::string original = openStore(path, {}).kernel("k1")->cubin;
  int refused = 0, cuts = 0;
  for (size_t length = 0; length < good.size(); length += 1024, ++cuts) {
    CAPTURE(length);
    std::string bytes = good.substr(0, length);
    writeFile(path, bytes);
    Result<Store> store = Store::open(path);
    refused += refusesOrReads(store, original);
    CHECK((!store || !store->verify() || !store->verify()->problems.empty()));
    CHECK(readFile(path) == bytes);
  }
  CHECK(refused > cuts / 2);
}

TEST_CASE("[3] any damaged page is an error or unnoticed data, never a crash or a wrong kernel") {
  ScratchFolder folder;
  std::string path = folder / "a.db", good = makeStore(path);
  std::string original = openStore(path, {}).kernel("k1")->cubin;
  int refused = 0;
  for (size_t page = 0; page < good.size(); page += 4096) {
    std::string bytes = good;
    for (size_t i = page + (page == 0 ? 100 : 0); i < page + 4096; i += 3)
      bytes[i] = char(bytes[i] ^ 0x5a);
    writeFile(path, bytes);
    refused += refusesOrReads(Store::open(path), original);
    CHECK(readFile(path) == bytes);
  }
  CHECK(refused > 0);
}

TEST_CASE("verify finds a winner without its kernel") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  makeStore(path);
  runSql(path, "PRAGMA foreign_keys = OFF; DELETE FROM kernels");
  std::vector<std::string> problems = openStore(path, {}).verify()->problems;
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("names a kernel that is not there") != std::string::npos);
}

TEST_CASE("verify reads every row of every table, and says which is wrong") {
  ScratchFolder folder;
  const std::string sound = folder / "sound.db", path = folder / "a.db";
  {
    Store store = openStore(sound, writing());
    for (int64_t bucket : {1, 2})
      REQUIRE(store.publish(someKernel("k1"), someWinner(someKernel("k1"), {bucket, 1, 1})).isOk());
    for (const char *config : {"x=1", "x=2", "x=3"})
      REQUIRE(store.recordTrial(someTrial(config)).isOk());
    DeviceRecord device;
    static_cast<DeviceIdentity &>(device) = someDevice();
    REQUIRE(store.recordDevice(device).isOk());
    REQUIRE(store.recordLinks(someLinks()).isOk());
    REQUIRE(store.setName({"first", "pattern-a", "", 1}).isOk());
    REQUIRE(store.setName({"second", "pattern-a", "", 1}).isOk());
    REQUIRE(store.finalise().isOk());
  }
  CHECK(openStore(sound, {}).verify()->problems.empty());
  const std::string no = std::string(64, '0');
  const std::pair<std::string, std::string> damages[] = {
      {"UPDATE winners SET winner_key = '" + no + "' WHERE rowid = 2",
       "winners, row 2: winner_key is " + no + ", the digest of its columns "},
      {"UPDATE winners SET device_name = 'Other' WHERE rowid = 1", "winners, row 1: winner_key is "},
      {"UPDATE winners SET median_us = 1.0 WHERE rowid = 2", "winners, row 2: checksum is "},
      {"UPDATE winners SET dtype = 'int3' WHERE rowid = 2",
       "winners, row 2: store '" + path + "': expected a dtype bf16, fp16, fp32 or e4m3, got 'int3'"},
      {"UPDATE trials SET session_key = '" + no + "' WHERE rowid = 3",
       "trials, row 3: session_key is " + no + ", the digest of its columns "},
      {"UPDATE trials SET head_dim = 32 WHERE rowid = 1", "trials, row 1: session_key is "},
      {"UPDATE trials SET median_us = 1.0 WHERE rowid = 2", "trials, row 2: checksum is "},
      {"UPDATE trials SET config_digest = '" + no + "' WHERE rowid = 2", "trials, row 2: checksum is "},
      {"UPDATE devices SET l2_bytes = 7", "devices, row 1: checksum is "},
      {"UPDATE links SET gbps = 7.0", "links, row 1: checksum is "},
      {"UPDATE links SET gbps = 0.0", "links, row 1: gbps: expected 0.001 to 1e6, got 0"},
      {"UPDATE links SET ranks = 4", "links, row 1: link_key is "},
      {"UPDATE names SET pattern = 'pattern-b' WHERE name = 'second'", "names, row 2: checksum is "},
      {"UPDATE kernels SET needs_checksum = '" + no + "'",
       "kernels, row 1: store '" + path + "': kernel k1 does not match its checksum"},
      {"UPDATE trials SET dtype = '' WHERE rowid = 2", "trials, row 2: store '" + path + "': expected a dtype"},
      {"UPDATE trials SET outcome = '' WHERE rowid = 2",
       "trials, row 2: expected a configuration digest and an outcome, got '"},
      {"UPDATE devices SET device_key = '" + no + "'",
       "devices, row 1: device_key is " + no + ", the digest of its columns "},
      {"UPDATE devices SET sm_count = 7", "devices, row 1: device_key is "},
      {"UPDATE names SET pattern = '' WHERE name = 'second'",
       "names, row 2: expected a name and a pattern digest, got 'second' and ''"},
      {"UPDATE kernels SET registers = 7",
       "kernels, row 1: store '" + path + "': kernel k1 does not match its checksum"}};
  for (const auto &damage : damages) {
    CAPTURE(damage.first);
    const auto &[sql, said] = damage;
    std::filesystem::copy_file(sound, path, std::filesystem::copy_options::overwrite_existing);
    runSql(path, sql);
    const std::vector<std::string> problems = openStore(path, {}).verify()->problems;
    REQUIRE(problems.size() == 1);
    CHECK_MESSAGE(problems[0].rfind(said, 0) == 0, problems[0]);
  }
}

TEST_CASE("a store is opened through links to its file and its folder") {
  ScratchFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_directory_symlink("real", folder / "linked");
  makeStore(folder / "real/a.db");
  std::filesystem::create_symlink("real/a.db", folder / "b.db");
  for (const char *name : {"b.db", "linked/a.db"})
    for (StoreMode mode : {StoreMode::readOnly, StoreMode::readWrite, StoreMode::immutable})
      CHECK(openCode(folder / name, mode) == StatusCode::ok);
  chmod((folder / "real/a.db").c_str(), 0666);
  CHECK(openCode(folder / "b.db", StoreMode::readOnly) == StatusCode::denied);
  chmod((folder / "real/a.db").c_str(), 0644);
  std::ofstream(folder / "real/a.db-wal") << "rows";
  chmod((folder / "real/a.db-wal").c_str(), 0644);
  CHECK(openCode(folder / "b.db", StoreMode::immutable) == StatusCode::invalidArgument);
  chmod((folder / "real/a.db-wal").c_str(), 0666);
  CHECK(openCode(folder / "b.db", StoreMode::readOnly) == StatusCode::denied);
}

TEST_CASE("who only reads leaves no log and no index, and takes away none that others use or that holds rows") {
  ScratchFolder folder;
  const std::string path = folder / "k.db", log = path + "-wal", index = path + "-shm";
  const KernelRecord record = someKernel("k1", "pattern-a", 20000);
  const auto exists = [](const std::string &file) { return ::access(file.c_str(), F_OK) == 0; };
  {
    Store writer = openStore(path, writing());
    REQUIRE(writer.publish(record, someWinner(record)).isOk());
    CHECK(openStore(path, {}).kernels()->size() == 1);
    CHECK(exists(log));
    CHECK(exists(index));
    CHECK(writer.kernels()->size() == 1);
  }
  CHECK(!exists(log));
  const std::string bytes = readFile(path);
  {
    Store first = openStore(path, {}), second = openStore(path, {});
    CHECK(first.kernels()->size() == 1);
    {
      Store closed = std::move(first);
    }
    CHECK(second.kernels()->size() == 1);
    CHECK(second.verify()->problems.empty());
  }
  CHECK(!exists(log));
  CHECK(!exists(index));
  CHECK(readFile(path) == bytes);
  const auto killed = [&] { // with rows in the log
    Store writer = openStore(path, writing());
    const KernelRecord more = someKernel("k2", "pattern-a", 20000);
    return writer.publish(more, someWinner(more)).isOk() ? (::_exit(0), 0) : 1;
  };
  CHECK(inChild(killed) == 0);
  CHECK(exists(log));
  CHECK(openStore(path, {}).kernels()->size() == 2);
  CHECK(exists(log));
  CHECK(readFile(path) == bytes);
}

TEST_CASE("whatever is a store, or lies beside one as a part of it, is known by its name") {
  ScratchFolder folder;
  const std::string path = folder / "k.db";
  makeStore(path);
  writeFile(folder / "text", std::string(200, 'x'));
  writeFile(folder / "text-wal", "");
  REQUIRE(::symlink(path.c_str(), (folder / "link").c_str()) == 0);
  for (const char *name : {"k.db", "link", "k.db-wal", "k.db-shm", "k.db-journal"})
    CHECK(holdsStore(folder / name));
  for (const char *name : {"text", "text-wal", "nothing", "k.db-copy", "-wal", "."})
    CHECK(!holdsStore(folder / name));
}

TEST_CASE("[6] a file that others may write is refused unless allowed") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  makeStore(path);
  for (mode_t mode : {0664, 0646, 0666}) {
    chmod(path.c_str(), mode);
    CHECK(openCode(path, StoreMode::readOnly) == StatusCode::denied);
    CHECK(openCode(path, StoreMode::readWrite) == StatusCode::denied);
    StoreOptions allowed;
    allowed.allowForeignWriters = true;
    CHECK(Store::open(path, allowed).isOk());
  }
  chmod(path.c_str(), 0644);
  CHECK(openCode(path, StoreMode::readOnly) == StatusCode::ok);
}

TEST_CASE("[6] a file of another user is refused unless allowed") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  makeStore(path);
  if (geteuid() != 0 || chown(path.c_str(), 65534, 65534) != 0) {
    MESSAGE("skipped: this process may not give files away");
    return;
  }
  for (StoreMode mode : {StoreMode::readOnly, StoreMode::readWrite, StoreMode::immutable})
    CHECK(openCode(path, mode) == StatusCode::denied);
  CHECK(Store::open(path).status().message().find("another user owns it") != std::string::npos);
  StoreOptions allowed;
  allowed.allowForeignWriters = true;
  CHECK(Store::open(path, allowed).isOk());
}

TEST_CASE("[5] network file systems: reading works, writing is refused unless forced") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  makeStore(path);
  StoreOptions options = writing();
  options.fileSystemType = kNfs;
  Status refused = Store::open(path, options).status();
  CHECK(refused.code() == StatusCode::denied);
  CHECK(refused.message().find("NFS") != std::string::npos);
  CHECK(refused.message().find("then merge") != std::string::npos);
  options.forceNetwork = true;
  {
    Store forced = openStore(path, options);
    KernelRecord record = someKernel("k2");
    CHECK(forced.publish(record, someWinner(record)).isOk());
    CHECK(!std::filesystem::exists(path + "-wal"));
  }
  {
    Store local = openStore(path, writing());
    KernelRecord record = someKernel("k3");
    CHECK(local.publish(record, someWinner(record)).isOk());
    CHECK(std::filesystem::exists(path + "-wal"));
  }
  StoreOptions reading;
  reading.fileSystemType = kNfs;
  CHECK(Store::open(path, reading).isOk());
}

TEST_CASE("[5] the network file systems are known by type") {
  for (int64_t type : {0x6969, 0x0bd00bd0, 0x65735546, 0x01021997})
    CHECK(networkFileSystemName(type).has_value());
  CHECK(networkFileSystemName(int64_t(int32_t(0xff534d42))).has_value());
  for (int64_t type : {0xef53, 0x58465342, 0x01021994, 0x794c7630})
    CHECK(!networkFileSystemName(type).has_value());
  CHECK(fileSystemType("/proc/none").isOk());
}

TEST_CASE("a shipped file in a folder that nobody may write") {
  ScratchFolder folder;
  std::string path = folder / "strange name%?#.db";
  makeStore(path);
  makeStore(folder / "other.db");
  CHECK(!std::filesystem::exists(path + "-wal"));
  chmod(path.c_str(), 0444);
  chmod(folder.path().c_str(), 0555);
  int code = inChild([&] {
    if (getuid() == 0 && setuid(65534) != 0)
      return 9;
    StoreOptions options;
    options.mode = StoreMode::immutable;
    options.allowForeignWriters = getuid() == 65534;
    Result<Store> immutable = Store::open(path, options);
    if (!immutable || !immutable->kernel("k1"))
      return 1;
    options.mode = StoreMode::readOnly;
    Result<Store> reading = Store::open(path, options);
    if (!reading || !reading->kernel("k1"))
      return 2;
    options.mode = StoreMode::readWrite;
    Result<Store> refused = Store::open(path, options);
    KernelRecord record = someKernel("k2");
    Status status = refused ? refused->publish(record, someWinner(record)) : refused.status();
    if (status.code() != StatusCode::denied)
      return 3;
    Status missing = Store::open(path + ".new", options).status();
    if (missing.code() != StatusCode::io && missing.code() != StatusCode::denied)
      return 4;
    Status merge = refused ? refused->merge({folder / "other.db"}, options).status() : refused.status();
    if (merge.code() != StatusCode::denied)
      return 5;
    Status exported = immutable->exportTo(path + ".out", {}).status();
    return exported.code() == StatusCode::denied &&
                   exported.message().find("cannot write in its folder") != std::string::npos
               ? 0
               : 6;
  });
  chmod(folder.path().c_str(), 0755);
  CHECK(code == 0);
}

TEST_CASE("[1] a full disk is an error and the file stays sound") {
  ScratchFolder folder;
  std::string path = folder / "a.db";
  makeStore(path);
  int code = inChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit = {200000, 200000};
    setrlimit(RLIMIT_FSIZE, &limit);
    Result<Store> store = Store::open(path, writing());
    if (!store)
      return 1;
    for (int i = 0; i < 50; ++i) {
      KernelRecord record = someKernel("big" + std::to_string(i), "pattern-a", 30000);
      Status status = store->publish(record, someWinner(record, {i, 0, 1}));
      if (!status.isOk())
        return status.code() == StatusCode::io ? 0 : 2;
    }
    return 3;
  });
  CHECK(code == 0);
  Store store = openStore(path, {});
  CHECK(store.verify()->problems.empty());
  CHECK(store.counts()->winners == store.counts()->kernels);
}
