// Slurm as siding's controller sees it, for tests: one call of a Client, its answer as JSON.
//
//   siding-test-slurm any|library|tools jobs|nodes|partitions|reservations|settings|about
//   siding-test-slurm BACKEND order suspend|resume JOB
//   siding-test-slurm BACKEND update JOB KEY=VALUE...    nodes, reservation, admin_comment, comment, nice
//   siding-test-slurm BACKEND reserve NAME NODES USERS SECONDS
//   siding-test-slurm BACKEND unreserve NAME
//   siding-test-slurm BACKEND reconcile JSON    {"jobs": {"4": {"nodes": ["a"], "why": "x"}},
//                                                "kept": {"7": {"nodes": ["a"], "user": "ann", "seconds":
//                                                60}}}
//                                               takes the steps towards that, and says them
//
// Errors: the code and the message on stderr, exit 1.
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/clock.h"
#include "common/status.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "controller/platform/slurm/client/open.h"
#include "controller/platform/slurm/reconcile/steps.h"

namespace siding::slurm {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

Json ToJson(const std::vector<NodeId>& nodes) {
  Json list = Json::array();
  for (const NodeId& node : nodes) list.push_back(node.value());
  return list;
}

Json Micros(const std::optional<Time>& time) { return time ? Json(ToMicros(*time)) : Json(); }

Json ToJson(const QueueJob& j) {
  return {{"id", j.id.value()},
          {"array", j.array.value()},
          {"array_tasks", j.array_tasks},
          {"array_task", j.array_task ? Json(*j.array_task) : Json()},
          {"name", j.name},
          {"uid", j.uid},
          {"gid", j.gid},
          {"phase", static_cast<int>(j.phase)},
          {"state", j.state},
          {"reason", j.reason},
          {"partition", j.partition},
          {"account", j.account},
          {"qos", j.qos},
          {"reservation", j.reservation},
          {"on", ToJson(j.on)},
          {"only_on", ToJson(j.only_on)},
          {"nodes", j.nodes},
          {"eligible", Micros(j.eligible)},
          {"cpus", j.cpus},
          {"memory_per_node", j.memory_per_node.value},
          {"gpus_per_node", j.gpus_per_node},
          {"priority", j.priority},
          {"nice", j.nice},
          {"held", j.held},
          {"requeueable", j.requeueable},
          {"restarts", j.restarts},
          {"submitted", Micros(j.submitted)},
          {"started", Micros(j.started)},
          {"preempted", Micros(j.preempted)},
          {"limit", j.limit ? Json(ToSeconds(*j.limit)) : Json()},
          {"comment", j.comment},
          {"admin_comment", j.admin_comment}};
}

Json ToJson(const QueueNode& n) {
  return {{"id", n.id.value()},
          {"address", n.address},
          {"state", n.state},
          {"up", n.up},
          {"drained", n.drained},
          {"cpus", n.cpus},
          {"cpus_used", n.cpus_used},
          {"memory", n.memory.value},
          {"memory_used", n.memory_used.value},
          {"gpus", n.gpus},
          {"gpus_used", n.gpus_used},
          {"reason", n.reason}};
}

Json ToJson(const Partition& p) {
  return {{"name", p.name},
          {"up", p.up},
          {"is_default", p.is_default},
          {"nodes", ToJson(p.nodes)},
          {"max_time", p.max_time ? Json(ToSeconds(*p.max_time)) : Json()},
          {"priority_tier", p.priority_tier},
          {"grace", ToSeconds(p.grace)}};
}

Json ToJson(const Reservation& r) {
  return {{"name", r.name},
          {"nodes", ToJson(r.nodes)},
          {"users", r.users},
          {"start", ToMicros(r.start)},
          {"end", ToMicros(r.end)}};
}

template <class T>
absl::Status Print(const absl::StatusOr<Client::List<T>>& list) {
  if (!list.ok()) return list.status();
  Json all = Json::array();
  for (const T& one : **list) all.push_back(ToJson(one));
  std::cout << all.dump(1) << "\n";
  return absl::OkStatus();
}

absl::Status PrintSettings(Client& client) {
  SIDING_ASSIGN_OR_RETURN(const Settings settings, client.LoadSettings());
  std::cout << Json({{"requeue_exits", settings.requeue_exits},
                     {"requeue_hold_exits", settings.requeue_hold_exits},
                     {"requeues", settings.requeues},
                     {"keeps_output", settings.keeps_output},
                     {"task_prolog", settings.task_prolog},
                     {"priority_by_age", settings.priority_by_age}})
            << "\n";
  return absl::OkStatus();
}

absl::Status Order(Client& client, const Words& words) {
  SIDING_RETURN_IF_ERROR(client.Jobs().status());  // who gives orders has seen the queue
  for (Verb verb : {Verb::kSuspend, Verb::kResume}) {
    if (ToString(verb) == words.at(1)) return client.Do(JobNumber(std::stoul(words.at(2))), verb);
  }
  return absl::InvalidArgumentError("no such order: " + words.at(1));
}

absl::Status Update(Client& client, const Words& words) {
  SIDING_RETURN_IF_ERROR(client.Jobs().status());
  JobChange change;
  for (size_t i = 2; i < words.size(); ++i) {
    const std::pair<std::string, std::string> word = absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    if (word.first == "nodes") {
      SIDING_ASSIGN_OR_RETURN(change.only_on, ExpandHostlist(word.second));
    } else if (word.first == "reservation") {
      change.reservation = word.second;
    } else if (word.first == "admin_comment") {
      change.admin_comment = word.second;
    } else if (word.first == "comment") {
      change.comment = word.second;
    } else if (word.first == "nice") {
      change.nice = std::stoll(word.second);
    } else {
      return absl::InvalidArgumentError("no such key: " + word.first);
    }
  }
  return client.Update(JobNumber(std::stoul(words.at(1))), change);
}

absl::Status Reserve(Client& client, const Words& words) {
  Reservation reservation;
  reservation.name = words.at(1);
  SIDING_ASSIGN_OR_RETURN(reservation.nodes, ExpandHostlist(words.at(2)));
  reservation.users = absl::StrSplit(words.at(3), ',');
  reservation.start = SystemClock().Now();
  reservation.end = reservation.start + std::chrono::seconds(std::stoi(words.at(4)));
  return client.CreateReservation(reservation);
}

std::vector<NodeId> Nodes(const Json& names) {
  std::vector<NodeId> nodes;
  for (const Json& name : names) nodes.emplace_back(name.get<std::string>());
  return nodes;
}

DesiredState ToDesired(const Json& json, Time now) {
  DesiredState desired;
  for (const auto& [job, wanted] : json.at("jobs").items()) {
    desired.jobs[JobId(std::stoul(job))] = {.nodes = Nodes(wanted.value("nodes", Json::array())),
                                            .why = wanted.value("why", ""),
                                            .before_siblings = wanted.value("before_siblings", false)};
  }
  for (const auto& [job, wanted] : json.at("kept").items()) {
    desired.kept[JobId(std::stoul(job))] = {Nodes(wanted.at("nodes")), wanted.at("user"),
                                            now + std::chrono::seconds(wanted.at("seconds").get<int>())};
  }
  return desired;
}

absl::Status Reconcile(Client& client, const Words& words) {
  const Time now = SystemClock().Now();
  const DesiredState desired = ToDesired(Json::parse(words.at(1)), now);
  SIDING_ASSIGN_OR_RETURN(const auto jobs, client.Jobs());
  SIDING_ASSIGN_OR_RETURN(const auto reservations, client.Reservations());
  SIDING_ASSIGN_OR_RETURN(const Settings settings, client.LoadSettings());
  Json said = Json::array();
  for (const Step& step : StepsTowards(desired, *jobs, *reservations, now, settings.priority_by_age)) {
    for (const std::string& action : step.actions) said.push_back(step.target + ": " + action);
    SIDING_RETURN_IF_ERROR(Apply(client, step));
  }
  std::cout << said << "\n";
  return absl::OkStatus();
}

absl::Status Run(Client& client, const Words& words) {
  const std::string& verb = words.at(0);
  if (verb == "jobs") return Print(client.Jobs());
  if (verb == "nodes") return Print(client.Nodes());
  if (verb == "partitions") return Print(client.Partitions());
  if (verb == "reservations") return Print(client.Reservations());
  if (verb == "settings") return PrintSettings(client);
  if (verb == "order") return Order(client, words);
  if (verb == "update") return Update(client, words);
  if (verb == "reserve") return Reserve(client, words);
  if (verb == "reconcile") return Reconcile(client, words);
  if (verb == "unreserve") return client.DeleteReservation(words.at(1));
  if (verb != "about") return absl::InvalidArgumentError("no such verb: " + verb);
  std::cout << Json(client.Description()) << "\n";
  return absl::OkStatus();
}

absl::Status Run(const Words& words) {
  SIDING_ASSIGN_OR_RETURN(const Backend backend, ParseBackend(words.at(0)));
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, OpenClient(backend));
  return Run(*client, Words(words.begin() + 1, words.end()));
}

}  // namespace
}  // namespace siding::slurm

int main(int argc, char** argv) {
  const absl::Status status = siding::slurm::Run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
