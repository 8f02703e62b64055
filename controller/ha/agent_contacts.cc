#include "controller/ha/agent_contacts.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/directory.h"
#include "common/files.h"

namespace siding {
namespace {

constexpr char kSuffix[] = ".asked.";

// Two machines may have the same numbers of processes.
std::string FreshName() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace

AgentContactsFile::AgentContactsFile(const std::string& journal, const std::string& address)
    : path_(absl::StrCat(journal, kSuffix, absl::StrReplaceAll(address, {{"/", "_"}}))),
      process_(FreshName()) {}

AgentContactsFile::~AgentContactsFile() { unlink(path_.c_str()); }

void AgentContactsFile::Count(const NodeId& node) {
  MutexLock lock(mutex_);
  ++times_[node];
  fresh_ = true;
}

absl::Status AgentContactsFile::Write() {
  nlohmann::json times = nlohmann::json::object();
  {
    MutexLock lock(mutex_);
    if (!fresh_) return absl::OkStatus();
    for (const auto& [node, count] : times_) times[node.value()] = count;
    fresh_ = false;
  }
  const nlohmann::json text = {{"process", process_}, {"asked", std::move(times)}};
  const absl::Status written =
      WriteFileAtomically(path_, text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 0600);
  if (!written.ok()) {
    MutexLock lock(mutex_);
    fresh_ = true;
  }
  return written;
}

AgentContacts ReadAgentContacts(const std::string& journal) {
  AgentContacts contacts;
  const size_t slash = journal.rfind('/');
  const std::string folder = journal.substr(0, slash);
  const std::string prefix = journal.substr(slash + 1) + kSuffix;
  const auto names = ListFolder(folder);
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
    if (!absl::StartsWith(name, prefix) || absl::StrContains(name, ".tmp.")) continue;
    const auto text = ReadFile(folder + "/" + name);
    if (!text.ok()) continue;
    try {
      const auto note = nlohmann::json::parse(*text);
      const std::string process = note.at("process");
      for (const auto& [node, count] : note.at("asked").items())
        contacts[{process, NodeId(node)}] = count.get<int64_t>();
    } catch (const std::exception&) {
      continue;
    }
  }
  return contacts;
}

}  // namespace siding
