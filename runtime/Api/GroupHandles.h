#pragma once

#include "runtime/Api/Handles.h"
#include "runtime/Core/GroupPlan.h"
#include "runtime/Distributed/CudaShard.h"
#include "runtime/Distributed/GroupCall.h"
#include "runtime/Distributed/Transport.h"

struct heddle_group_plan {
  explicit heddle_group_plan(heddle::GroupPlan made)
      : plan(std::make_unique<heddle::GroupPlan>(std::move(made))), text(std::make_unique<std::string>(plan->text())) {}

  std::unique_ptr<const heddle::GroupPlan> plan;
  std::unique_ptr<const std::string> text;
  const heddle::GroupDigests digests = heddle::GroupDigests::of(*plan, *text);
  heddle::HandleLife life{};
};

struct heddle_group {
  std::unique_ptr<heddle::Transport> transport;
  std::unique_ptr<heddle::CudaShard> shard = nullptr; // of a group of GPUs
  heddle::Agreements agreed = {};
  heddle::HandleLife life{};
};
