#include "agent/shim/slurm_gpus.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/directory.h"
#include "spank/messages.h"

namespace siding {
namespace {

constexpr char kDevice[] = "nvidia";
constexpr size_t kLongestList = 2048;  // two of them fit into a packet

// The variable is the user's to change: it must not become another line.
std::string OnOneLine(const std::string& list) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == ',' || c == '-'; };
  if (list.size() <= kLongestList && std::all_of(list.begin(), list.end(), is_plain)) return list;
  return "?";
}

std::string LineOf(const std::vector<std::string>& environment, const std::string& variable,
                   const std::string& key) {
  for (const std::string& entry : environment) {
    if (!absl::StartsWith(entry, variable + "=") || entry.size() == variable.size() + 1) continue;
    return key + " " + OnOneLine(entry.substr(variable.size() + 1)) + "\n";
  }
  return "";
}

}  // namespace

std::string DevicesToOpen(const std::string& folder) {
  std::vector<int> open;
  bool all = true;
  for (const std::string& name : ListFolder(folder).value_or(std::vector<std::string>())) {
    int number = 0;
    if (!absl::StartsWith(name, kDevice) || !absl::SimpleAtoi(name.substr(sizeof kDevice - 1), &number))
      continue;
    // Asks the cgroup as well, and does not wake the GPU.
    if (access((folder + "/" + name).c_str(), R_OK | W_OK) == 0)
      open.push_back(number);
    else
      all = false;
  }
  std::sort(open.begin(), open.end());
  return all ? "" : absl::StrJoin(open, ",");
}

std::string GpuLines(const std::vector<std::string>& environment, const std::string& devices) {
  const std::string lists = LineOf(environment, "SLURM_JOB_GPUS", spank::kJobGpus) +
                            LineOf(environment, "SLURM_STEP_GPUS", spank::kStepGpus);
  if (lists.empty() || devices.empty()) return lists;
  return absl::StrCat(lists, spank::kGpuDevices, " ", devices, "\n");
}

}  // namespace siding
