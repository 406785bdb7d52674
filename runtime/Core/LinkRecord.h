// Owns what a store keeps of messages between GPUs, as they were measured (`heddle ring links`).
#pragma once

#include <cstdint>
#include <string>

namespace heddle {

// Ranks with one GPU each: every one sends to the next and receives from the one before, all at once.
struct LinkKey {
  std::string deviceName; // of every rank's GPU; of several kinds, each of them once, behind ", "
  int64_t ranks = 0;
  int64_t hosts = 0; // machines on which they are

  template <class F> static void fields(F &&f) {
    f("device_name", &LinkKey::deviceName);
    f("ranks", &LinkKey::ranks);
    f("hosts", &LinkKey::hosts);
  }
};

// us of a message = latencyUs + bytes / (1000 gbps).
struct LinkRecord : LinkKey {
  double gbps = 0; // 1e9 bytes a second, each way
  double latencyUs = 0;
  std::string messages;    // "1048576:85.2 16777216:129.0": bytes, and us of the slowest GPU
  std::string nccl;        // its version
  int64_t createdUnix = 0; // seconds; the store fills it when 0

  template <class F> static void fields(F &&f) {
    LinkKey::fields(f);
    f("gbps", &LinkRecord::gbps);
    f("latency_us", &LinkRecord::latencyUs);
    f("messages", &LinkRecord::messages);
    f("nccl", &LinkRecord::nccl);
    f("created_unix", &LinkRecord::createdUnix);
  }
};

} // namespace heddle
