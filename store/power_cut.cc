#include "store/power_cut.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include "common/files.h"

namespace siding::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPending = 12;  // changes of which each may be on the disk or not
constexpr int kTears = 4;            // what may be left of a file that was not synced

// The `tear`th thing that may have become of a file.
std::string Torn(const std::string& content, size_t durable, int tear) {
  const size_t since = content.size() - std::min(durable, content.size());
  switch (tear) {
    case 0:
      return content;
    case 1:
      return content.substr(0, durable);
    case 2:
      return content.substr(0, durable + since / 2);
    default:
      return content.substr(0, durable) + std::string(since, '\0');
  }
}

std::string PathOf(int fd) {
  std::error_code error;
  return fs::read_symlink("/proc/self/fd/" + std::to_string(fd), error).string();
}

}  // namespace

// What the disk may hold: names by folder, and contents, each with how much of it is there for certain.
struct RecordingDisk::AtCut {
  std::vector<std::map<std::string, Inode>> names;
  std::vector<std::string> content;
  std::vector<size_t> durable;
  std::vector<size_t> pending;  // steps that may be on the disk or not
  int tear = 0;
};

RecordingDisk::RecordingDisk(std::string world) : world_(std::move(world)) { Load(world_); }

RecordingDisk::Inode RecordingDisk::Load(const std::string& path) {
  const Inode inode = nodes_.size();
  nodes_.emplace_back();
  nodes_[inode].folder = fs::is_directory(path);
  if (!nodes_[inode].folder) {
    nodes_[inode].content = ReadFile(path).value();
    return inode;
  }
  for (const auto& entry : fs::directory_iterator(path)) {
    const Inode child = Load(entry.path());
    nodes_[inode].names[entry.path().filename()] = child;
  }
  nodes_[inode].first = nodes_[inode].names;
  return inode;
}

std::optional<RecordingDisk::Inode> RecordingDisk::Find(const std::string& path) const {
  const std::string relative = fs::path(path).lexically_relative(world_).string();
  if (relative.empty() || relative.starts_with("..")) return std::nullopt;
  Inode inode = 0;
  if (relative == ".") return inode;
  for (const fs::path& part : fs::path(relative)) {
    const auto it = nodes_[inode].names.find(part);
    if (it == nodes_[inode].names.end()) return std::nullopt;
    inode = it->second;
  }
  return inode;
}

std::optional<RecordingDisk::Name> RecordingDisk::Parse(const std::string& path) const {
  const auto folder = Find(fs::path(path).parent_path());
  if (!folder) return std::nullopt;
  return Name{*folder, fs::path(path).filename()};
}

size_t RecordingDisk::operations() const {
  MutexLock lock(mutex_);
  return steps_.size();
}

int RecordingDisk::Record(int result, const std::function<Step()>& step) {
  const int error = errno;
  MutexLock lock(mutex_);
  Step made = result >= 0 ? step() : Step();
  if (made.removed) nodes_[made.removed->folder].names.erase(made.removed->name);
  if (made.added) nodes_[made.added->folder].names[made.added->name] = made.inode;
  if (made.exchanged) nodes_[made.exchanged->folder].names[made.exchanged->name] = made.other;
  steps_.push_back(std::move(made));
  errno = error;
  return result;
}

int RecordingDisk::Add(int result, const std::string& path, bool folder) {
  return Record(result, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Step step{.added = Parse(path), .inode = nodes_.size()};
    nodes_.push_back({.folder = folder});
    return step;
  });
}

int RecordingDisk::Remove(int result, const std::string& path) {
  return Record(result, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Step{.removed = Parse(path)}; });
}

int RecordingDisk::Create(const std::string& path) { return Add(real_.Create(path), path, false); }

int RecordingDisk::MakeFolder(const std::string& path) { return Add(real_.MakeFolder(path), path, true); }

int RecordingDisk::RemoveFile(const std::string& path) { return Remove(real_.RemoveFile(path), path); }

int RecordingDisk::RemoveFolder(const std::string& path) { return Remove(real_.RemoveFolder(path), path); }

int RecordingDisk::Rename(const std::string& from, const std::string& to) {
  return Record(real_.Rename(from, to), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Step{.removed = Parse(from), .added = Parse(to), .inode = Find(from).value()};
  });
}

int RecordingDisk::Exchange(const std::string& one, const std::string& other) {
  if (!can_exchange) errno = EINVAL;
  const int result = can_exchange ? real_.Exchange(one, other) : -1;
  return Record(result, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Step{.added = Parse(one),
                .inode = Find(other).value(),
                .exchanged = Parse(other),
                .other = Find(one).value()};
  });
}

int RecordingDisk::Link(const std::string& file, const std::string& name) {
  return Record(real_.Link(file, name), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Step{.added = Parse(name), .inode = Find(file).value()};
  });
}

ssize_t RecordingDisk::Write(int fd, const void* data, size_t size) {
  const ssize_t written = real_.Write(fd, data, size);
  Record(written < 0 ? -1 : 0, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Step{.inode = Find(PathOf(fd)).value(),
                .written = std::string(static_cast<const char*>(data), static_cast<size_t>(written))};
  });
  return written;
}

int RecordingDisk::SyncFile(int fd) {
  return Record(real_.SyncFile(fd), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Step{.inode = Find(PathOf(fd)).value(), .synced = true};
  });
}

int RecordingDisk::SyncFolder(const std::string& path) {
  return Record(real_.SyncFolder(path), [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto folder = Find(path);
    return folder ? Step{.inode = *folder, .synced = true} : Step();
  });
}

RecordingDisk::AtCut RecordingDisk::Replay(size_t n) const {
  AtCut state;
  for (const Node& node : nodes_) {
    state.names.push_back(node.first);
    state.content.push_back(node.content);
    state.durable.push_back(node.content.size());
  }
  const auto synced_after = [&](size_t i,
                                const std::optional<Name>& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !name || std::any_of(steps_.begin() + static_cast<long>(i), steps_.begin() + static_cast<long>(n),
                                [&](const Step& s) { return s.synced && s.inode == name->folder; });
  };
  for (size_t i = 0; i < n; ++i) {
    const Step& step = steps_[i];
    state.content[step.inode] += step.written;
    if (step.synced) state.durable[step.inode] = state.content[step.inode].size();
    if (!synced_after(i, step.removed) || !synced_after(i, step.added) || !synced_after(i, step.exchanged))
      state.pending.push_back(i);
  }
  if (state.pending.size() > kMostPending) throw std::length_error("too many changes that were not synced");
  return state;
}

size_t RecordingDisk::CutBefore(size_t n, const std::string& folder,
                                const std::function<void()>& visit) const {
  MutexLock lock(mutex_);
  const AtCut cut = Replay(n);
  bool torn = false;
  for (Inode i = 0; i < nodes_.size(); ++i) torn |= cut.durable[i] < cut.content[i].size();
  std::set<std::string> seen;  // what cannot be reached makes no difference
  for (size_t mask = 0; mask < size_t{1} << cut.pending.size(); ++mask) {
    AtCut state = cut;
    for (size_t i = 0; i < n; ++i) {
      const auto pending = std::find(cut.pending.begin(), cut.pending.end(), i);
      if (pending != cut.pending.end() && (mask >> (pending - cut.pending.begin()) & 1) == 0) continue;
      const Step& step = steps_[i];
      if (step.removed) state.names[step.removed->folder].erase(step.removed->name);
      if (step.added) state.names[step.added->folder][step.added->name] = step.inode;
      if (step.exchanged) state.names[step.exchanged->folder][step.exchanged->name] = step.other;
    }
    for (state.tear = 0; state.tear < (torn ? kTears : 1); ++state.tear) {
      if (!seen.insert(Describe(state, 0)).second) continue;
      fs::remove_all(folder);
      Make(state, 0, folder);
      visit();
      fs::remove_all(folder);
    }
  }
  return seen.size();
}

// The same for two states of one cut if their trees have the same names and contents.
std::string RecordingDisk::Describe(const AtCut& state, Inode inode) const {
  std::string text = std::to_string(inode);
  if (state.durable[inode] < state.content[inode].size()) text += ":" + std::to_string(state.tear);
  for (const auto& [name, child] : state.names[inode]) text += "/" + name + "/" + Describe(state, child);
  return text + "/";
}

void RecordingDisk::Make(const AtCut& state, Inode inode, const std::string& path) const {
  if (nodes_[inode].folder) {
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all);
    for (const auto& [name, child] : state.names[inode]) Make(state, child, path + "/" + name);
    return;
  }
  std::ofstream(path, std::ios::binary) << Torn(state.content[inode], state.durable[inode], state.tear);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace siding::store
