// Slurm through its command-line tools (squeue, sinfo, scontrol): works wherever they do, at the
// price of a process for each call.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/run_program.h"
#include "controller/platform/slurm/client/client.h"

namespace siding::slurm {

// Runs one tool to its end.
using ToolRunner = std::function<absl::StatusOr<ProgramResult>(const std::vector<std::string>& argv)>;

// The tools of PATH, each killed after a time in which Slurm itself would have given up.
ToolRunner RealTools();

std::unique_ptr<Client> NewToolClient(ToolRunner run = RealTools());

}  // namespace siding::slurm
