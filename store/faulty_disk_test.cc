// Whatever operation fails, an image is whole or it is not there, and the next attempt works.
#include "store/faulty_disk.h"

#include <cstring>
#include <iostream>

#include "common/status.h"
#include "gmock/gmock.h"
#include "store/secret_key.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Failure {
  Fault fault;
  int error;
};

class FaultyDiskTest : public FolderTest {
 protected:
  FaultyDiskTest() : FolderTest(kMemory) {}

  std::string Root() const { return folder_ + "/store"; }
  absl::StatusOr<std::unique_ptr<ImageStore>> Open() {
    return OpenDirectoryStore(Root(), {.keys = keys_, .plain_folder = folder_ + "/plain", .disk = &disk_});
  }

  absl::Status TryPut(ImageStore& store) {
    SIDING_ASSIGN_OR_RETURN(const auto draft, store.Begin(key_));
    EXPECT_TRUE(WriteAt(draft->path() + "/core-1.img", "registers"));
    EXPECT_TRUE(WriteAt(draft->path() + "/pages-1.img", Pattern(10'000)));
    SIDING_RETURN_IF_ERROR(draft->Seal({}).status());
    return draft->Commit();
  }

  // Has `work` meet each failure at each of its operations, in a new store every time, and `check` look at
  // what came of it, on a disk that is whole again.
  void FailEverywhere(const std::function<void(ImageStore&)>& before,
                      const std::function<absl::Status(ImageStore&)>& work,
                      const std::function<void(ImageStore&, const absl::Status&)>& check) {
    int operations = 0, failures = 0;
    for (const Failure& failure : kFailures) {
      for (int at = 0;; ++at, ++failures) {
        SCOPED_TRACE(testing::Message() << strerror(failure.error) << ", way "
                                        << static_cast<int>(failure.fault) << ", at operation " << at);
        disk_.Heal();
        std::filesystem::remove_all(Root());
        auto store = Open().value();
        before(*store);
        disk_.Fail(at, failure.fault, failure.error);
        const absl::Status status = work(*store);
        const bool all_tried = disk_.operations() <= at;
        disk_.Heal();
        if (all_tried) {
          operations = at;
          break;
        }
        const std::vector<ImageKey> keys = store->List().value();
        for (const ImageKey& key : keys) EXPECT_TRUE(store->Verify(key).ok());
        check(*store, status);
        ASSERT_TRUE(Open().ok());
        EXPECT_EQ(CountEntries(Root() + "/staging"), 0u) << "no draft is left";
      }
    }
    std::cout << operations << " operations, " << failures << " failures\n";
  }

  static constexpr Failure kFailures[] = {
      {Fault::kOnce, ENOSPC},  {Fault::kOnce, EIO},         {Fault::kForGood, ENOSPC}, {Fault::kForGood, EIO},
      {Fault::kShortWrite, 0}, {Fault::kTornWrite, ENOSPC}, {Fault::kTornWrite, EIO},
  };
  const ImageKey key_{CheckpointId("42.3"), 0};
  std::shared_ptr<const KeyRing> keys_;  // null: not encrypted
  FaultyDisk disk_;
};

class MakingAnImageTest : public FaultyDiskTest {
 protected:
  void Make() {
    FailEverywhere([](ImageStore&) {}, [&](ImageStore& store) { return TryPut(store); },
                   [&](ImageStore& store, const absl::Status& status) {
                     EXPECT_EQ(IsTierProblem(status), !status.ok()) << status;
                     if (status.ok()) {
                       EXPECT_THAT(store.List().value(), ElementsAre(key_));
                     }
                     const absl::Status again = TryPut(store);
                     EXPECT_TRUE(again.ok() || absl::IsAlreadyExists(again)) << again;
                     EXPECT_TRUE(store.Verify(key_).ok());
                   });
  }
};

TEST_F(MakingAnImageTest, NotEncrypted) { Make(); }

TEST_F(MakingAnImageTest, Encrypted) {
  keys_ = std::make_shared<KeyRing>(ParseSecretKey(std::string(64, '1')).value());
  Make();
  EXPECT_EQ(CountEntries(folder_ + "/plain/staging"), 0u) << "nothing plain is left";
}

TEST_F(FaultyDiskTest, MakingAnImageThatSharesFiles) {
  const ImageKey next{CheckpointId("42.4"), 0};
  const auto share = [&](ImageStore& store) -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(const Manifest base, store.Read(key_));
    SIDING_ASSIGN_OR_RETURN(const auto draft, store.Begin(next, &base));
    EXPECT_TRUE(WriteAt(draft->path() + "/core-1.img", "other registers"));
    SIDING_RETURN_IF_ERROR(draft->Share(base.files[1], "parent-1.pages-1.img"));
    SIDING_RETURN_IF_ERROR(draft->Seal({}).status());
    return draft->Commit();
  };
  FailEverywhere([&](ImageStore& store) { ASSERT_TRUE(TryPut(store).ok()); }, share,
                 [&](ImageStore& store, const absl::Status& status) {
                   EXPECT_TRUE(store.Verify(key_).ok());
                   if (status.ok()) {
                     EXPECT_TRUE(store.Verify(next).ok());
                   }
                   const absl::Status again = share(store);
                   EXPECT_TRUE(again.ok() || absl::IsAlreadyExists(again)) << again;
                 });
}

TEST_F(FaultyDiskTest, FullDiskIsCalledSo) {
  auto store = Open().value();
  disk_.Fail(0, Fault::kForGood, ENOSPC);
  const absl::Status status = store->Begin(key_).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(Root() + " is full (unknown free)"));
}

TEST_F(FaultyDiskTest, DeletingAnImage) {
  FailEverywhere([&](ImageStore& store) { ASSERT_TRUE(TryPut(store).ok()); },
                 [&](ImageStore& store) { return store.Delete(key_); },
                 [&](ImageStore& store, const absl::Status& status) {
                   if (status.ok()) {
                     EXPECT_THAT(store.List().value(), IsEmpty());
                   }
                   EXPECT_TRUE(store.Delete(key_).ok());
                   EXPECT_THAT(store.List().value(), IsEmpty());
                 });
}

TEST_F(FaultyDiskTest, SettingAnImageAside) {
  FailEverywhere([&](ImageStore& store) { ASSERT_TRUE(TryPut(store).ok()); },
                 [&](ImageStore& store) { return Quarantine(store, key_); },
                 [&](ImageStore& store, const absl::Status& status) {
                   if (status.ok()) {
                     EXPECT_THAT(store.List().value(), IsEmpty());
                   }
                   EXPECT_TRUE(Quarantine(store, key_).ok());
                   EXPECT_EQ(CountEntries(Root() + "/damaged"), 1u);
                 });
}

// An error leaves the damaged image where it is; at no time both are gone.
class ReplacingAnImageTest : public FaultyDiskTest {
 protected:
  std::string Place() const { return Root() + "/images/42.3/0"; }
  size_t SetAside() const {
    const std::string damaged = Root() + "/damaged";
    return std::filesystem::exists(damaged) ? CountEntries(damaged) : 0;
  }

  void Replace() {
    disk_.Heal();
    const auto source = OpenDirectoryStore(folder_ + "/source").value();
    ASSERT_TRUE(TryPut(*source).ok());
    for (const Failure& failure : kFailures) {
      for (int at = 0;; ++at) {
        SCOPED_TRACE(testing::Message() << strerror(failure.error) << ", way "
                                        << static_cast<int>(failure.fault) << ", at operation " << at);
        disk_.Heal();
        std::filesystem::remove_all(Root());
        const auto store = Open().value();
        ASSERT_TRUE(store->CopyFrom(*source, key_, {}).ok());
        ASSERT_TRUE(WriteAt(Place() + "/core-1.img", "X"));
        disk_.Fail(at, failure.fault, failure.error);
        const absl::Status status = store->CopyFrom(*source, key_, {}).status();
        const bool all_tried = disk_.operations() <= at;
        disk_.Heal();
        Check(*store, failure.fault, status);
        ASSERT_TRUE(Open().ok());
        EXPECT_EQ(CountEntries(Root() + "/staging"), 0u) << "no draft is left";
        EXPECT_TRUE(store->CopyFrom(*source, key_, {}).ok());
        EXPECT_TRUE(store->Verify(key_).ok());
        if (all_tried) break;
      }
    }
  }

  void Check(const ImageStore& store, Fault fault, const absl::Status& status) {
    const absl::Status found = store.Verify(key_).status();
    EXPECT_FALSE(absl::IsAborted(status)) << status;
    if (status.ok()) {
      EXPECT_TRUE(found.ok()) << found;
      EXPECT_LE(SetAside(), 1u);
      return;
    }
    if (fault == Fault::kOnce || fault == Fault::kShortWrite) {
      EXPECT_TRUE(absl::IsDataLoss(found)) << "it is as before: " << found;
      EXPECT_EQ(SetAside(), 0u);
      return;
    }
    // Nor can be undone what was done.
    EXPECT_TRUE(found.ok() || absl::IsDataLoss(found) || SetAside() == 1) << found;
    if (disk_.can_exchange) {
      EXPECT_FALSE(absl::IsNotFound(found)) << found;
    }
  }
};

TEST_F(ReplacingAnImageTest, ByAnExchange) { Replace(); }

TEST_F(ReplacingAnImageTest, WhereTheFileSystemExchangesNothing) {
  disk_.can_exchange = false;
  Replace();
}

TEST_F(FaultyDiskTest, OpeningAStore) {
  int at = 0, opened = 0;
  for (bool all_tried = false; !all_tried; ++at) {
    SCOPED_TRACE(testing::Message() << "at operation " << at);
    std::filesystem::remove_all(Root());
    disk_.Fail(at, Fault::kOnce, EIO);
    opened += Open().ok();
    all_tried = disk_.operations() <= at;
    disk_.Heal();
    EXPECT_TRUE(TryPut(*Open().value()).ok());
    EXPECT_EQ(CountEntries(Root() + "/staging"), 0u);
  }
  EXPECT_EQ(opened, 2) << "where nothing failed, and where a lock file was left for the next sweep";
  std::cout << at - 1 << " operations\n";
}

TEST_F(FaultyDiskTest, DraftWhoseFilesWereNotSyncedIsNotSealedBySecondTry) {
  auto store = Open().value();
  auto draft = store->Begin(key_).value();
  ASSERT_TRUE(WriteAt(draft->path() + "/core-1.img", "registers"));
  disk_.Fail(0, Fault::kOnce, EIO);
  EXPECT_FALSE(draft->Seal({}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(draft->Seal({}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(draft->Commit()));
}

}  // namespace
}  // namespace siding::store
