#include "compiler/Library/CarriedTransport.h"

namespace heddle {
namespace {

constexpr uint64_t kMostText = uint64_t(1) << 24; ///< of a rank that says what it has

/// Nothing is neither sent nor received, on both sides.
template <class Bytes> std::vector<heddle_message> messagesOf(const std::vector<Bytes> &listed) {
  std::vector<heddle_message> messages;
  for (const Bytes &each : listed)
    if (each.bytes)
      messages.push_back({each.peer, 0, const_cast<void *>(static_cast<const void *>(each.data)), each.bytes});
  return messages;
}

} // namespace

Status CarriedTransport::exchange(const Exchange &step, void *) {
  HEDDLE_TRY(checkWhole());
  const std::vector<heddle_message> sends = messagesOf(step.sends), receives = messagesOf(step.receives);
  if (sends.empty() && receives.empty())
    return {};
  char why[1024] = "";
  if (carrier.exchange(carrier.context, sends.data(), int32_t(sends.size()), receives.data(), int32_t(receives.size()),
                       why, sizeof why) == 0)
    return {};
  why[sizeof why - 1] = 0;
  abort("its messages are not carried: " + std::string(*why ? why : "no reason is given"));
  return checkWhole();
}

Status CarriedTransport::checkWhole() {
  std::lock_guard<std::mutex> lock(mutex);
  return left.empty() ? Status() : Status::unavailable(left);
}

void CarriedTransport::abort(const std::string &why) {
  std::lock_guard<std::mutex> lock(mutex);
  if (left.empty())
    left = "rank " + std::to_string(own) + " left: " + why;
}

Result<std::vector<std::string>> CarriedTransport::gather(const std::string &mine) {
  std::vector<std::string> texts(static_cast<size_t>(all));
  std::vector<uint64_t> lengths(texts.size(), mine.size());
  const uint64_t length = mine.size();
  Exchange ofLengths, ofTexts;
  for (int32_t peer = 0; peer < all; ++peer)
    if (peer != own) {
      ofLengths.sends.push_back({peer, &length, sizeof length});
      ofLengths.receives.push_back({peer, &lengths[size_t(peer)], sizeof length});
    }
  HEDDLE_TRY(exchange(ofLengths, nullptr));
  for (int32_t peer = 0; peer < all; ++peer) {
    std::string &text = texts[size_t(peer)];
    if (lengths[size_t(peer)] > kMostText)
      return Status::unavailable("rank " + std::to_string(peer) + " says " + std::to_string(lengths[size_t(peer)]) +
                                 " bytes: it carries something else");
    text = peer == own ? mine : std::string(lengths[size_t(peer)], '\0');
    if (peer == own)
      continue;
    ofTexts.sends.push_back({peer, mine.data(), length});
    ofTexts.receives.push_back({peer, text.data(), text.size()});
  }
  HEDDLE_TRY(exchange(ofTexts, nullptr));
  return texts;
}

} // namespace heddle
