// Few rows that keep many keys: ranks that have these compute a part of each row's result, in fp32, and home merges them.
#include "runtime/Distributed/GroupShare.h"

#include "runtime/Core/PartsLaunch.h"

#include <algorithm>

namespace heddle {

void GroupShare::layGuests() {
  if (isBackward())
    return;
  for (const GuestRows &of : walk.guests) {
    Guest guest = {&of, walk.blocks[size_t(of.home)][size_t(of.rows)], 0, nullptr, {}};
    auto take = [&] {
      float *out = memory.takeFloats(guestElements(guest) * (args.v.size[3] + 1));
      return Carry{out, out + guestElements(guest) * args.v.size[3]};
    };
    OwnBlock *home = of.home == rank ? &own[size_t(of.rows)] : nullptr;
    if (home && home->launches > 1)
      home->arrived = home->carries[(home->launches - 2) % 2];
    for (const GuestRows::Meeting &meeting : of.meetings) {
      guest.launches += meeting.rank == rank;
      if (home ? !guest.ranks.empty() && guest.ranks.back() == meeting.rank
               : meeting.rank != rank || guest.launches > 2)
        continue;
      guest.parts.push_back(take());
      if (!home)
        continue;
      guest.ranks.push_back(meeting.rank);
      guest.sums.push_back(memory.takeFloats(guestElements(guest)));
      if (home->arrived.out)
        home->arrived.lse = guest.sums.back();
      else
        home->arrived = guest.parts.back();
    }
    if (guest.parts.empty())
      continue;
    guest.queries = memory.take(int64_t(queryBytes(guest)));
    guests.push_back(std::move(guest));
  }
}

GroupShare::Launch GroupShare::guestLaunch(const Guest &guest, const GuestRows::Meeting &meeting, size_t number) const {
  const int64_t first = placeOfRow(share.rows, meeting.columns.begin), keys = meeting.columns.size();
  const Carry &part = guest.parts[number % 2];
  Launch made{kindOfLaunch(/*hasOutOfFloats=*/true), args};
  made.args.q = tensorAt(guestQueries(guest), args.q, request.elements.q, guest.rows.size());
  made.args.q_origin = guest.rows.begin;
  made.args.k = rowsOf(args.k, bytesOf(Role::k), first, keys);
  made.args.v = rowsOf(args.v, bytesOf(Role::v), first, keys);
  made.args.k_origin = meeting.columns.begin;
  made.args.out = tensorAt(rowsOfPart(guest, part), args.out, DType::fp32, guest.rows.size());
  made.args.lse = part.lse;
  if (number > 0)
    made.args.carry_out = guest.parts[(number - 1) % 2].out, made.args.carry_lse = guest.parts[(number - 1) % 2].lse;
  made.args.workspace = kernelBytes ? asideWorkspace : nullptr;
  made.args.workspace_bytes = kernelBytes;
  return made;
}

Status GroupShare::forEachMeeting(const UseGuest &use) const {
  for (const Guest &guest : guests) {
    size_t number = 0;
    for (const GuestRows::Meeting &meeting : guest.of->meetings)
      if (meeting.rank == rank)
        HEDDLE_TRY(use(guest, meeting, number++));
  }
  return {};
}

Status GroupShare::sendGuests(Exchange &exchange, ShardDevice &device) const {
  for (const Guest &guest : guests) {
    if (guest.launches) {
      exchange.receives.push_back({guest.of->home, guest.queries, queryBytes(guest)});
      continue;
    }
    const RowPlace from = fieldOf(Role::q).own.at(own[size_t(guest.of->rows)].first, 0);
    const bool isRun = args.q.size[0] == 1 && from.isRun(share.heads);
    if (!isRun)
      HEDDLE_TRY(device.copy({guestQueries(guest), from, args.q.size[0], guest.rows.size(), share.heads}, Queue::link));
    for (int32_t to : guest.ranks)
      exchange.sends.push_back({to, isRun ? from.base : guest.queries, queryBytes(guest)});
  }
  return {};
}

Status GroupShare::meetGuests(ShardDevice &device) const {
  if (!meetsGuests(walk, size_t(rank)))
    return {};
  HEDDLE_TRY(device.follow(Queue::aside, Queue::link));
  HEDDLE_TRY(device.follow(Queue::compute, Queue::aside)); // as in runForward
  HEDDLE_TRY(forEachMeeting([&](const Guest &guest, const GuestRows::Meeting &meeting, size_t number) {
    const Launch made = guestLaunch(guest, meeting, number);
    return device.launch(made.kind, made.args, Queue::aside);
  }));
  return device.letBegin(Queue::link); // what waits for the message alone begins first, but in a graph
}

/// The parts and their lse lie one behind the other. What is computed from now on waits for what came before them, not for them.
Status GroupShare::sendParts(const RankView &ranks, ShardDevice &device) {
  partsHaveLeft = true;
  HEDDLE_TRY(device.follow(Queue::compute, Queue::link));
  HEDDLE_TRY(device.follow(Queue::compute, Queue::aside));
  HEDDLE_TRY(device.follow(Queue::link, Queue::compute));
  Exchange exchange;
  for (const Guest &guest : guests) {
    if (guest.launches)
      exchange.sends.push_back({guest.of->home, guest.parts[(guest.launches - 1) % 2].out, partBytes(guest)});
    for (size_t part = 0; part < guest.ranks.size(); ++part)
      exchange.receives.push_back({guest.ranks[part], guest.parts[part].out, partBytes(guest)});
  }
  return WalkRun::travel(exchange, ranks, device);
}

WalkRun::Besides GroupShare::besidesOfGuests(const RankView &ranks, ShardDevice &device) {
  const size_t last = walk.steps.size() - 1;
  WalkRun::Besides besides;
  besides.addMessages = [this, &device, last](size_t step, Exchange &exchange) {
    return step + 1 == last ? sendGuests(exchange, device) : Status();
  };
  besides.isHere = [this, last](size_t step) { return partsHaveLeft && step < last; };
  besides.begin = [this, &ranks, &device, last](size_t step) -> Status {
    if (step + 1 == last)
      return meetGuests(device);
    if (step != last)
      return {};
    if (!partsHaveLeft)
      HEDDLE_TRY(sendParts(ranks, device));
    return mergeGuests(device);
  };
  return besides;
}

Status GroupShare::mergeGuests(ShardDevice &device) const {
  HEDDLE_TRY(device.follow(Queue::compute, Queue::link));
  for (const Guest &guest : guests)
    HEDDLE_TRY(mergeParts(guest, device));
  return {};
}

/// In the order of ranks, into what home computed of the rows; where it did not, into the first part.
Status GroupShare::mergeParts(const Guest &guest, ShardDevice &device) const {
  if (guest.launches)
    return {};
  const OwnBlock &block = own[size_t(guest.of->rows)];
  const bool hasOwn = block.launches > 1;
  const float *lse = hasOwn ? block.carries[(block.launches - 2) % 2].lse : guest.parts[0].lse;
  for (size_t part = hasOwn ? 0 : 1; part < guest.parts.size(); ++part) {
    const RowPlace to = rowsOfPart(guest, block.arrived), from = rowsOfPart(guest, guest.parts[part]);
    HEDDLE_TRY(device.add(
        {{to, from, args.q.size[0], guest.rows.size(), share.heads}, lse, guest.parts[part].lse, guest.sums[part]},
        Queue::compute));
    lse = guest.sums[part];
  }
  return {};
}

} // namespace heddle
