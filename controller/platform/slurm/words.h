// Slurm's words and ours. Pure; both ways of talking to Slurm go through here, so that both say the same.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/platform/slurm/client.h"
#include "controller/platform/slurm/values.h"

namespace siding {

// "node[1-3,07],login" -> node1, node2, node3, node07, login. Empty, "(null)" and "None": no nodes.
// kInvalidArgument says what is wrong; more than 65536 nodes are.
absl::StatusOr<std::vector<NodeId>> ExpandHosts(const std::string& hosts);
// "node1,node2": Slurm takes the long form as well.
std::string JoinHosts(const std::vector<NodeId>& nodes);

// "gpu:2(S:0-1)", "gres:gpu:a100:4,gres:license:1", "gres/gpu=2": how many GPUs, of whatever type.
int CountGpus(const std::string& gres);

// From the word that squeue shows. Words that later versions of Slurm may have mean kRunning, so that a job
// that we do not understand is never taken to have left its nodes.
SlurmJobState JobStateOf(const std::string& word);

// How Slurm's tools say it: "suspend", "requeuehold". kCancel has a tool of its own.
std::string ToString(SlurmOrder order);

// The status for what Slurm said in plain words, such as "Invalid job id specified".
absl::Status StatusOfMessage(const std::string& message);

}  // namespace siding
