// What the store's tests share: a folder of their own, files in it, and waiting for a condition.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "common/files.h"
#include "common/patience_for_test.h"
#include "common/status.h"
#include "gtest/gtest.h"
#include "store/store.h"

namespace siding::store {

// `size` bytes that differ from those of another seed.
inline std::string Pattern(size_t size, unsigned seed = 1) {
  std::string data(size, '\0');
  uint32_t x = seed * 2654435761u + 1;
  for (char& c : data) {
    x = x * 1664525u + 1013904223u;
    c = static_cast<char>(x >> 24);
  }
  return data;
}

// Writes `data` at `offset` into a file that is made if there is none. False if the disk does not take it.
inline bool WriteAt(const std::string& path, const std::string& data, off_t offset = 0) {
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t n =
        pwrite(fd.get(), data.data() + done, data.size() - done, offset + static_cast<off_t>(done));
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return fd.valid();
}

inline size_t CountEntries(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// In memory: a test that makes hundreds of stores cannot wait for a disk.
inline constexpr char kMemory[] = "/dev/shm";

class FolderTest : public testing::Test {
 protected:
  explicit FolderTest(const std::string& parent = "/tmp") : folder_(parent + "/siding-store-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr) << strerror(errno);
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

// Of whatever is there.
inline absl::Status Quarantine(ImageStore& store, const ImageKey& key) {
  SIDING_ASSIGN_OR_RETURN(const UniqueFd held, store.Hold(key));
  return store.Quarantine(key, held);
}

// A store with the key most tests use.
class StoreTest : public FolderTest {
 protected:
  StoreTest() : store_(Open()) {}

  std::unique_ptr<ImageStore> Open() const { return OpenDirectoryStore(folder_).value(); }

  std::unique_ptr<ImageDraft> BeginWith(const ImageKey& key, const std::string& content = "content") {
    auto draft = store_->Begin(key).value();
    EXPECT_TRUE(WriteAt(draft->path() + "/core-1.img", content));
    return draft;
  }

  void Put(const ImageKey& key, const std::string& content = "content") {
    auto draft = BeginWith(key, content);
    ASSERT_TRUE(draft->Seal({}).ok());
    ASSERT_TRUE(draft->Commit().ok());
  }

  std::string Staging() const { return folder_ + "/staging"; }

  const ImageKey key_{CheckpointId("42.3"), 0};
  std::unique_ptr<ImageStore> store_;
};

}  // namespace siding::store
