// Power cuts without a machine to switch off, for tests: what is done to a folder is recorded, and every
// state in which the disk could be found afterwards is made in another folder.
//
// Only what a file system promises is taken to hold:
//   - a file has the content that it had when it was last synced; what was written since is there, or is not,
//     or half of it is, or there are zeros in its place;
//   - a name is in a folder, or is not, as when the folder was last synced; of each change since it may be
//     that it is on the disk and that it is not, whatever became of the other changes;
//   - a rename is one change, and is on the disk for certain when both folders have been synced.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "store/disk.h"

namespace siding::store {

// Carries everything out on the real disk as well. Paths outside of `world` are not recorded. Thread-safe,
// but `visit` must not call it.
class RecordingDisk final : public Disk {
 public:
  // What is in `world` now is on the disk for certain.
  explicit RecordingDisk(std::string world);

  bool can_exchange = true;
  // Operations so far.
  size_t operations() const;
  // Makes each state in which the power cut before operation `n` could have left `world`, in `folder`, which
  // is removed before and after, and calls `visit`, once for those that look alike. Returns how many there
  // were.
  size_t CutBefore(size_t n, const std::string& folder, const std::function<void()>& visit) const;

  int Create(const std::string& path) override;
  ssize_t Write(int fd, const void* data, size_t size) override;
  int SyncFile(int fd) override;
  int SyncFolder(const std::string& path) override;
  int MakeFolder(const std::string& path) override;
  int Rename(const std::string& from, const std::string& to) override;
  int Exchange(const std::string& one, const std::string& other) override;
  int Link(const std::string& file, const std::string& name) override;
  int RemoveFile(const std::string& path) override;
  int RemoveFolder(const std::string& path) override;
  int64_t FreeSpace(const std::string& path) override { return real_.FreeSpace(path); }

 private:
  using Inode = size_t;  // an index of nodes_
  struct Node {
    bool folder = false;
    std::string content;                 // a file's, at the beginning
    std::map<std::string, Inode> names;  // a folder's, at the moment
    std::map<std::string, Inode> first;  // a folder's, at the beginning
  };
  struct Name {
    Inode folder = 0;
    std::string name;
  };
  // What one operation did. Of these at most one of the first two, `synced` or `written`.
  struct Step {
    std::optional<Name> removed;
    std::optional<Name> added;
    Inode inode = 0;  // of `added`, `synced` and `written`
    // Another name that is added, of another one: `added` and this are exchanged.
    std::optional<Name> exchanged;
    Inode other = 0;  // of `exchanged`
    bool synced = false;
    std::string written;
  };
  struct AtCut;

  Inode Load(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Inode> Find(const std::string& path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Name> Parse(const std::string& path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int Record(int result, const std::function<Step()>& step);
  int Add(int result, const std::string& path, bool folder);
  int Remove(int result, const std::string& path);
  AtCut Replay(size_t n) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Describe(const AtCut& state, Inode inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Make(const AtCut& state, Inode inode, const std::string& path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Disk& real_ = RealDisk();
  const std::string world_;
  mutable Mutex mutex_;
  std::vector<Node> nodes_ ABSL_GUARDED_BY(mutex_);  // [0] is `world`
  std::vector<Step> steps_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::store
