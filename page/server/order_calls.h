// Which call of the API an order is.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "siding/v1/api.pb.h"
#include "siding/v1/page.pb.h"

namespace siding::page {

// `Api` has the calls as its methods, the service's or a stub's of it; `call(method, request, answer)` makes
// one. That a verb is known, and what it needs is there, errand.h has found out.
template <class Api, class Call>
absl::Status GiveBy(const v1::PageOrder& order, v1::PageOrdered& response, const Call& call) {
  const v1::ActionRequest& action = order.action();
  const std::string& verb = action.verb();
  v1::Empty none;
  if (verb == "cordon" || verb == "uncordon") {
    v1::NodeRef node;
    node.set_name(action.node());
    node.set_if_unchanged(order.if_unchanged());
    return verb == "cordon" ? call(&Api::Cordon, node, none) : call(&Api::Uncordon, node, none);
  }
  if (verb == "checkpoint" || verb == "vacate") {
    v1::CheckpointRequest save;
    save.set_id(action.job());
    save.set_tier(action.tier());
    save.set_if_unchanged(order.if_unchanged());
    if (verb == "vacate") return call(&Api::Vacate, save, none);
    v1::CheckpointResponse saved;
    SIDING_RETURN_IF_ERROR(call(&Api::Checkpoint, save, saved));
    response.set_checkpoint(saved.checkpoint());
    return absl::OkStatus();
  }
  if (verb == "migrate") {
    v1::MigrateRequest move;
    move.set_id(action.job());
    *move.mutable_nodes() = action.nodes();
    move.set_if_unchanged(order.if_unchanged());
    return call(&Api::Migrate, move, none);
  }
  v1::JobRef job;
  job.set_id(action.job());
  job.set_if_unchanged(order.if_unchanged());
  if (verb == "suspend") return call(&Api::Suspend, job, none);
  if (verb == "resume") return call(&Api::Resume, job, none);
  if (verb == "hold") return call(&Api::Hold, job, none);
  if (verb == "release") return call(&Api::Release, job, none);
  if (verb == "kill") return call(&Api::Kill, job, none);
  return absl::InvalidArgumentError(absl::StrCat("verb '", verb, "' is not known"));
}

}  // namespace siding::page
