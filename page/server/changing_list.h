// A list as its reader is told it: each entry as JSON, with the version in which it was last another one.
// Whoever has been told a version is told what is different since.
//
// What is compared is what would be answered, and not what has happened: whatever changes an answer, be it an
// event, a report of an agent, another policy or another controller, is found in the same way, and nothing
// that this reader may not see takes part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace siding::page {

class ChangingList {
 public:
  struct Entry {
    int64_t id = 0;
    std::string json;
  };

  // So many of those that have gone are known; who was told of a list before that is told the whole.
  static constexpr size_t kMostGone = 10'000;

  // With a name of its own: versions of another list, in another process too, are none of this one's.
  ChangingList();

  // The entries as they are now, each once.
  void Update(std::vector<Entry> entries);

  const std::string& version() const { return version_; }
  // About what it takes of memory.
  size_t bytes() const { return bytes_ + kept_.capacity() * sizeof(Kept) + gone_.size() * sizeof(Gone); }
  // v1::JobChanges as JSON. Changes(): nothing if that is not known, or if it is not much less than the
  // whole.
  std::string Whole() const;
  std::optional<std::string> Changes(const std::string& since) const;

 private:
  struct Kept {
    Entry entry;
    int64_t changed = 0;
  };
  struct Gone {
    int64_t id = 0;
    int64_t when = 0;
  };

  std::string NameOf(int64_t number) const;
  std::optional<int64_t> NumberOf(const std::string& version) const;
  std::string Text(bool whole, int64_t since) const;

  const std::string name_;
  int64_t number_ = 0;
  std::string version_ = NameOf(0);
  std::vector<Kept> kept_;  // by id
  size_t bytes_ = 0;        // of their JSON
  std::deque<Gone> gone_;   // the last one last
  int64_t oldest_ = 0;      // what has gone since then is known
};

}  // namespace siding::page
