// What can be done with each job that is in the way, how long it takes, and what it costs.
//
// Times count from the request's arrival: now, or not_before if it was announced. Those that decide about a
// deadline are taken at a quantile of the predicted times, such that with the policy's `confidence` all the
// nodes are free in time: each of n nodes needed has to be on time with probability confidence^(1/n).
//
// Loss, in node-seconds, with n = the job's nodes (all ranks act in parallel, the slowest counts; medians):
//   suspend     n * (drain + refill): what is on GPUs goes to the node's RAM and back; without GPUs 0
//   checkpoint  n * (drain + dump + restore + refill): time in which it computes nothing; of a job whose
//   ranks
//               wait for each other, as was seen of it, with that
//   early       n * (drain + stop + restore + refill + from the image to the arrival): the image is taken in
//               advance, while the job runs on; at the arrival it is only ended, and what it did since is
//               done again. It stands still for as long as it was seen to; else for the whole dump
//   app         n * grace: the longest that saving may take
//   kill        n * (arrival - durable_at + restore): work that has to be done again, no more than what its
//               checkpoints on schedule see to, and the way back if it has an image
//
// The nodes of a job on GPUs are free as soon as its GPUs are drained, if its memory fits beside the request:
// it is frozen then, and the image is written from RAM when no request waits for it any more ("through RAM").
//
// A job that wants notice runs on for that long, at no loss, and then is frozen or dumped: all but the
// program's own save and a kill release its nodes so much later. A job whose image is taken early is told at
// the arrival: a cluster manager's is dumped once more then.
//
// Timers run on while a job is suspended, and stop for a checkpoint. So a job with one is suspended only
// where it cannot be checkpointed in time: its checkpoints come before the suspension in the order of
// preference, and the suspension costs more than the dearest of them. It is not left out, as that would
// refuse requests or kill jobs.
//
// An image is written only where there is room for it: on the job's nodes for the local tier; for the shared
// one as its nodes see it, and in all. How many images of one plan fit there together, planner.cc looks at.
//
// A method that has failed counts from the end of its pause on, and its options wait for that.
//
// One that is being saved, and then runs on, can only be killed until its image is made.
//
// A job that is left alone for a while (min_runtime, cooldown) counts from the end of that on: `wait` is the
// part of it that is left at the arrival. All times include it, and what a kill or an early image loses grows
// by it.
//
// What is minimised is a cost in the same unit:
//   loss_weight * loss                       of the job's class
//   + delay_weight * n * hold                the job waits as long as the request holds the nodes, unless it
//                                            migrates: then it continues at once on nodes the request cannot
//                                            use
//   + unused_node_weight * n * hold          less what the request uses, which is the same for all plans
//   + frozen_node_weight * idle * hold       suspend only; idle = n less the nodes that the request needs:
//   frozen,
//                                            a job keeps them from all others too
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/policy.h"
#include "model/snapshot.h"

namespace siding {

struct Option {
  Method method = Method::kKill;
  Tier tier = Tier::kShared;
  Duration release{0};            // from the arrival until the nodes are free, at the quantile
  Duration wait{0};               // of release: the job, or the method, is left alone until then
  Duration before_writing{0};     // of release, the wait included: nothing is written until then
  std::vector<Duration> by_rank;  // what each rank's image takes on its node's way to the tier; if early,
                                  // before the arrival
  int64_t loss_ms = 0;            // node-milliseconds
  int64_t cost_ms = 0;
  Duration done_again{0};     // kill only: what each of its nodes has to, of `loss`
  Bytes shared_bytes;         // that go to the shared tier, before the arrival if early, else after it
  bool stays_in_ram = false;  // memory is not given back before the deadline
  bool to_local_disk = false;
  bool migrates = false;
  bool early = false;
  bool last_resort = false;  // suspend only: timers would run on, and it can be checkpointed
};

// A job that could make way, or the reason why it may not.
struct Candidate {
  const JobView* job = nullptr;
  std::vector<Option> options;  // the class's order of preference, else that of Method; local before shared
  bool strict = false;          // only the first that is in time counts
  std::string why_not;          // if options is empty
  Time from;                    // it counts from then on
  std::string why_later;        // if that is not now
  PlanKeep keep;  // what of either is the policy's or the job's own; of a job that counts: its rule is unsaid
  std::string no_room;  // which tiers have none for its image; empty: all that could be used have
};

// What an image takes in the shared tier if the job leaves in this way, or is saved in advance.
Bytes SharedRoomOf(const JobView& job, const Option& option);

// Until when a job may not be preempted, for any request.
struct Protection {
  Time until;       // kForGood: it is never a victim; not after the moment that was asked about: it is one
  std::string why;  // "" if it is not protected
  PlanKeep keep;    // the same, in fields
};
inline constexpr Time kForGood = Time::max();
Protection ProtectionOf(const JobView& job, const Policy& policy, Time now);

// When the request can first use nodes.
Time ArrivalOf(const Snapshot& snapshot, const Request& request);
// How many standard deviations on the safe side a time has to be taken.
double DeviationsFor(double confidence, int nodes);

// The request by which victims are judged that may make way for any of these: what one costs and how sure its
// time has to be is as for the most nodes and the longest stay.
Request CommonRequest(const std::vector<Request>& requests);

// Says of a candidate without options why it has none.
void NoteNoOptions(Candidate& candidate);

// One per job of the snapshot, in its order. Deadlines are not looked at here, but for `request.not_before`.
std::vector<Candidate> MakeCandidates(const Snapshot& snapshot, const Request& request, const Policy& policy);

}  // namespace siding
