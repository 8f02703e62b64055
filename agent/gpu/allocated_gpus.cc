#include "agent/gpu/allocated_gpus.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/gpu/uuid.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int kMostGpus = 1024;  // of one machine, for Slurm

absl::Status Add(const std::string& item, std::vector<std::string>& names) {
  if (ParseGpuUuid(item).ok()) {
    names.push_back(item);
    return absl::OkStatus();
  }
  const std::vector<std::string> ends = absl::StrSplit(item, absl::MaxSplits('-', 1));
  int first = 0, last = 0;
  if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) || first < 0 ||
      last < first || last >= kMostGpus) {
    return absl::InvalidArgumentError(
        absl::StrCat("its list of GPUs has '", item, "': expected a number, a range, or a GPU's UUID"));
  }
  for (int number = first; number <= last; ++number) names.push_back(absl::StrCat(number));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ByDevice(const std::string& devices, size_t given,
                                                  const std::vector<std::string>& machine,
                                                  const std::map<std::string, int>& minors) {
  SIDING_ASSIGN_OR_RETURN(std::vector<std::string> numbers, ReadGpuList(devices));
  if (numbers.size() < given) {
    return absl::FailedPreconditionError(
        absl::StrCat("it was given ", given, " GPUs, and may open ", numbers.size()));
  }
  std::vector<std::string> uuids;
  for (const std::string& uuid : machine) {
    const auto minor = minors.find(uuid);
    if (minor == minors.end()) continue;
    if (std::erase(numbers, absl::StrCat(minor->second)) > 0) uuids.push_back(uuid);
  }
  if (numbers.empty()) return uuids;
  return absl::NotFoundError(absl::StrCat("the GPU driver knows no /dev/nvidia", numbers.front()));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadGpuList(const std::string& list) {
  std::vector<std::string> names;
  if (list.empty() || list == "NoDevFiles") return names;
  for (const std::string& item : std::vector<std::string>(absl::StrSplit(list, ',')))
    SIDING_RETURN_IF_ERROR(Add(item, names));
  return names;
}

absl::StatusOr<std::vector<std::string>> FindAllocatedGpus(const GpuAllocation& said,
                                                           const std::vector<std::string>& machine,
                                                           const std::map<std::string, int>& minors) {
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> names, ReadGpuList(said.list));
  if (names.empty()) return names;
  if (!said.devices.empty()) return ByDevice(said.devices, names.size(), machine, minors);
  std::vector<std::string> uuids;
  for (const std::string& name : names) {
    size_t place = 0;
    if (absl::SimpleAtoi(name, &place)) {
      if (place >= machine.size()) {
        return absl::NotFoundError(
            absl::StrCat("it was given GPU ", name, ", and the GPU driver knows ", machine.size()));
      }
      uuids.push_back(machine[place]);
    } else if (std::find(machine.begin(), machine.end(), name) != machine.end()) {
      uuids.push_back(name);
    } else {
      return absl::NotFoundError(absl::StrCat("it was given ", name, ", which the GPU driver does not know"));
    }
  }
  return uuids;
}

}  // namespace siding
