// How Open MPI 4 is told to stay within the job: by its default list of nodes, and by variables, which its
// options go before.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "launch/gang.h"

namespace siding::launch {

// A line for each task's node.
std::string HostFile(const Gang& gang);

// By name. `self`: the path of this program, which stands in for ssh; `host_file`: the path of the above.
// kInvalidArgument: mpirun cannot be told of such a path.
absl::StatusOr<std::map<std::string, std::string>> MpirunSettings(const Gang& gang, const std::string& self,
                                                                  const std::string& host_file, bool is_root);

}  // namespace siding::launch
