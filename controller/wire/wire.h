// Between the model's values and the messages of siding.v1. Thread-safe (pure functions).
#pragma once

#include "absl/status/statusor.h"
#include "model/job.h"
#include "model/plan.h"
#include "model/snapshot.h"
#include "siding/v1/api.pb.h"
#include "siding/v1/types.pb.h"

namespace siding {

v1::Method ToProto(Method method);
v1::Tier ToProto(Tier tier);
v1::Resources ToProto(const Resources& resources);
v1::AppMethod ToProto(const AppMethod& app);
v1::JobSpec ToProto(const JobSpec& spec);
v1::PlanKeep ToProto(const PlanKeep& keep);
v1::KeptGroup ToProto(const KeptGroup& group);
v1::Plan ToProto(const Plan& plan);

// kInvalidArgument naming the field and what was expected.
absl::StatusOr<Method> FromProto(v1::Method method);
// Unspecified is kShared.
Tier FromProto(v1::Tier tier);
Resources FromProto(const v1::Resources& resources);
TierRates FromProto(const v1::TierRates& rates);
// Checks everything that can be checked without knowing the cluster. uid, gid and user are taken as they are.
absl::StatusOr<JobSpec> FromProto(const v1::JobSpec& spec);
absl::StatusOr<JobChange> FromProto(const v1::UpdateRequest& request);
// What an agent says of a job whose tasks a cluster manager starts: how it may be preempted, and whose it is.
// Its program is not siding's business.
absl::StatusOr<JobSpec> ManagedFromProto(const v1::JobSpec& spec);

}  // namespace siding
