#include "launch/settings.h"

#include "absl/strings/str_cat.h"

namespace siding::launch {

std::string HostFile(const Gang& gang) {
  std::string text;
  for (const std::string& address : gang.addresses)
    absl::StrAppend(&text, address, " slots=", gang.slots, "\n");
  return text;
}

absl::StatusOr<std::map<std::string, std::string>> MpirunSettings(const Gang& gang, const std::string& self,
                                                                  const std::string& host_file,
                                                                  bool is_root) {
  // It takes several agents, with colons between them, and words of each.
  if (self.find_first_of(": \t") != std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat(self, ": expected a path without blanks and colons, for mpirun to call it"));
  std::map<std::string, std::string> settings = {
      {"plm", "rsh"},
      {"plm_rsh_agent", self + " --relay"},
      {"plm_rsh_no_tree_spawn", "1"},
      // Each relay stays until what it has started ends, and what that has to say is heard.
      {"orte_leave_session_attached", "1"},
      {"plm_rsh_num_concurrent", std::to_string(gang.addresses.size())},
      // A batch system around the job has other names for its nodes.
      {"ras", "^slurm,tm,gridengine,alps,lsf"},
      {"orte_default_hostfile", host_file},
      {"oob_tcp_if_include", gang.link},
      {"btl_tcp_if_include", gang.link},
      // What mpirun's parts keep in files, each node for itself: it goes with the job.
      {"orte_tmpdir_base", "/dev/shm"},
      // TCP and memory only: what else a node has is not in a checkpoint.
      {"pml", "ob1"},
      {"btl", "tcp,self,vader"},
      {"osc", "^ucx"},
      {"coll", "^hcoll"},
  };
  std::map<std::string, std::string> variables;
  for (const auto& [name, value] : settings) variables["OMPI_MCA_" + name] = value;
  if (is_root) {
    variables["OMPI_ALLOW_RUN_AS_ROOT"] = "1";
    variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  }
  return variables;
}

}  // namespace siding::launch
