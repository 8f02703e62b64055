// Keeps what agents report as observed state. Each agent speaks for its own node.
//
// Used under the engine's lock.
#pragma once

#include "absl/status/status.h"
#include "controller/engine/act/copy_orders.h"
#include "controller/engine/act/deletions.h"
#include "controller/engine/act/orders.h"
#include "controller/engine/act/step_networks.h"
#include "controller/engine/act/strays.h"
#include "controller/engine/act/verifications.h"
#include "controller/engine/decide/recovery.h"
#include "controller/engine/observe/copy_recovery.h"
#include "controller/engine/observe/managed_tasks.h"
#include "controller/engine/observe/missing_images.h"
#include "controller/engine/observe/node_faults.h"
#include "controller/engine/observe/silence.h"
#include "controller/engine/observe/stragglers.h"
#include "controller/engine/state/context.h"

namespace siding {

class AgentReports {
 public:
  AgentReports(const Context& c, Silence& silence, NodeFaults& faults, CopyRecovery& copy,
               ManagedTasks& tasks, Recovery& recovery, Deletions& deletions, CopyOrders& copies,
               Verifications& verifications, Strays& strays, Orders& orders, StepNetworks& steps,
               Stragglers& stragglers, MissingImages& missing)
      : state_(c.state),
        observed_(c.observed),
        clock_(c.clock),
        cluster_(c.cluster),
        accounts_(c.accounts),
        starts_(c.starts),
        recorder_(c.recorder),
        agenda_(c.agenda),
        limited_log_(c.limited_log),
        silence_(silence),
        faults_(faults),
        copy_(copy),
        tasks_(tasks),
        recovery_(recovery),
        deletions_(deletions),
        copies_(copies),
        verifications_(verifications),
        strays_(strays),
        orders_(orders),
        steps_(steps),
        stragglers_(stragglers),
        missing_(missing) {}

  // The hello lists all tasks that are on the node. kFailedPrecondition: it has an agent connected already.
  absl::Status OnConnected(const NodeId& node, const v1::Hello& hello);
  // Its answers are lost with the connection.
  void OnDisconnected(const NodeId& node);
  // Its numbers have passed controller/wire/check.h.
  void OnMessage(const NodeId& node, const v1::FromAgent& message);
  // Records notes for the job's owner. Every report of a task repeats all of its notes.
  void RecordNotes(const NodeId& node, const v1::TaskReport& report);

 private:
  void OnReport(const NodeId& node, const v1::TaskReport& report);
  bool IsForeign(const v1::TaskRef& task) const;
  void OnForeign(const NodeId& node, const v1::TaskReport& report);
  bool HasRoomFor(const NodeId& node, const v1::TaskReport& report, const v1::TaskReport* before);
  void OnResult(const NodeId& node, const v1::OpResult& result);
  void OnCopied(const CopyOrders::AskedToCopy& asked, const v1::OpResult& result);
  bool IsOnNodesOnly(const CheckpointId& id) const;
  void OnDamaged(const NodeId& node, const v1::DamagedImage& image);
  void TakeCopiesForDamaged(const CheckpointRecord& checkpoint, int rank, const NodeId& node,
                            const std::string& problem);
  void TakeForDamaged(const CheckpointId& id, int rank, const NodeId& node, const std::string& problem);

  const ClusterState& state_;
  ObservedState& observed_;
  const Clock& clock_;
  const ClusterView& cluster_;
  NodeAccounts& accounts_;
  PendingStarts& starts_;
  Recorder& recorder_;
  Agenda& agenda_;
  LimitedLog& limited_log_;
  Silence& silence_;
  NodeFaults& faults_;
  CopyRecovery& copy_;
  ManagedTasks& tasks_;
  Recovery& recovery_;
  Deletions& deletions_;
  CopyOrders& copies_;
  Verifications& verifications_;
  Strays& strays_;
  Orders& orders_;
  StepNetworks& steps_;
  Stragglers& stragglers_;
  MissingImages& missing_;
};

}  // namespace siding
