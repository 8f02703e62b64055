// Whenever the power goes, an image is whole or it is not there; and one that was committed is there.
#include "store/power_cut.h"

#include <iostream>

#include "common/files.h"
#include "gmock/gmock.h"
#include "store/secret_key.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

const ImageKey kKey{CheckpointId("42.3"), 0};
const ImageKey kOther{CheckpointId("42.3"), 1};
const ImageKey kLater{CheckpointId("42.4"), 0};

class PowerCutTest : public FolderTest {
 protected:
  PowerCutTest() : FolderTest(kMemory), world_(folder_ + "/world"), after_(folder_ + "/after") {
    std::filesystem::create_directory(world_);
  }

  // As CRIU does it: without a sync.
  static void Write(Disk& disk, const std::string& path, const std::string& data) {
    const UniqueFd fd(disk.Create(path));
    ASSERT_EQ(disk.Write(fd.get(), data.data(), data.size()), static_cast<ssize_t>(data.size()));
  }
  static void Fill(Disk& disk, const ImageDraft& draft) {
    Write(disk, draft.path() + "/core-1.img", "registers");
    Write(disk, draft.path() + "/pages-1.img", Pattern(10'000));
  }
  static void Put(Disk& disk, ImageStore& store, const ImageKey& key) {
    const auto draft = store.Begin(key).value();
    Fill(disk, *draft);
    ASSERT_TRUE(draft->Seal({}).ok());
    ASSERT_TRUE(draft->Commit().ok());
  }
  // Shares the pages of kKey.
  static void PutSharing(Disk& disk, ImageStore& store, const ImageKey& key) {
    const Manifest base = store.Read(kKey).value();
    const auto draft = store.Begin(key, &base).value();
    Write(disk, draft->path() + "/core-1.img", "other registers");
    ASSERT_EQ(base.files[1].name, "pages-1.img");
    ASSERT_TRUE(draft->Share(base.files[1], "parent-1.pages-1.img").ok());
    ASSERT_TRUE(draft->Seal({}).ok());
    ASSERT_TRUE(draft->Commit().ok());
  }
  // Not recorded, so taken to be on the disk since long.
  void PutBefore(const std::vector<ImageKey>& keys) {
    const auto store = OpenDirectoryStore(world_ + "/store").value();
    for (const ImageKey& key : keys) Put(RealDisk(), *store, key);
  }

  // Cuts the power at each moment of what `disk` has recorded. `check` gets the keys of the images that are
  // there afterwards, each of which is whole, and the number of the operation before which the power went.
  void CutEverywhere(const RecordingDisk& disk,
                     const std::function<void(size_t, const std::vector<ImageKey>&)>& check) {
    size_t states = 0;
    for (size_t n = 0; n <= disk.operations(); ++n) {
      states += disk.CutBefore(n, after_, [&] {
        SCOPED_TRACE(testing::Message() << "before operation " << n);
        const auto store = OpenDirectoryStore(after_ + "/store");
        ASSERT_TRUE(store.ok()) << store.status();
        const std::vector<ImageKey> keys = (*store)->List().value();
        for (const ImageKey& key : keys) EXPECT_TRUE((*store)->Verify(key).ok());
        EXPECT_EQ(CountEntries(after_ + "/store/staging"), 0u) << "no draft is left";
        check(n, keys);
        const ImageKey next{CheckpointId("42.5"), 0};
        Put(RealDisk(), **store, next);
        EXPECT_TRUE((*store)->Verify(next).ok()) << "the store can be used";
      });
    }
    std::cout << disk.operations() << " operations, " << states << " states of the disk\n";
  }

  const std::string world_;
  const std::string after_;
};

TEST_F(PowerCutTest, FirstImageOfANewStore) {
  RecordingDisk disk(world_);
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  Put(disk, *store, kKey);
  const size_t acknowledged = disk.operations() - 1;  // after it the lock file is removed
  CutEverywhere(disk, [&](size_t n, const std::vector<ImageKey>& keys) {
    EXPECT_THAT(keys, AnyOf(IsEmpty(), ElementsAre(kKey)));
    if (n >= acknowledged) {
      EXPECT_THAT(keys, ElementsAre(kKey));
    }
  });
}

TEST_F(PowerCutTest, RankBesideAnother) {
  PutBefore({kKey});
  RecordingDisk disk(world_);
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  Put(disk, *store, kOther);
  const size_t acknowledged = disk.operations() - 1;
  CutEverywhere(disk, [&](size_t n, const std::vector<ImageKey>& keys) {
    EXPECT_THAT(keys, Contains(kKey));
    if (n >= acknowledged) {
      EXPECT_THAT(keys, ElementsAre(kKey, kOther));
    }
  });
}

TEST_F(PowerCutTest, ImageThatSharesPages) {
  PutBefore({kKey});
  RecordingDisk disk(world_);
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  PutSharing(disk, *store, kLater);
  const size_t acknowledged = disk.operations() - 1;
  CutEverywhere(disk, [&](size_t n, const std::vector<ImageKey>& keys) {
    EXPECT_THAT(keys, Contains(kKey));
    if (n >= acknowledged) {
      EXPECT_THAT(keys, ElementsAre(kKey, kLater));
    }
  });
}

TEST_F(PowerCutTest, ImageThatIsCopiedFromAnotherTier) {
  const auto source = OpenDirectoryStore(folder_ + "/source").value();
  Put(RealDisk(), *source, kLater);
  PutBefore({kKey});
  RecordingDisk disk(world_);
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  const Manifest base = store->Read(kKey).value();  // with the same pages
  ASSERT_TRUE(store->CopyFrom(*source, kLater, {.bases = {&base}}).ok());
  const size_t done = disk.operations() - 1;
  CutEverywhere(disk, [&](size_t n, const std::vector<ImageKey>& keys) {
    EXPECT_THAT(keys, Contains(kKey));
    if (n >= done) {
      EXPECT_THAT(keys, Contains(kLater));
    }
  });
}

// At each moment the damaged one or the good one is in the place.
class ReplacingPowerCutTest : public PowerCutTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(, ReplacingPowerCutTest, testing::Bool(), [](const auto& param) {
  return param.param ? "ByAnExchange" : "WhereTheFileSystemExchangesNothing";
});

TEST_P(ReplacingPowerCutTest, DamagedImageThatIsReplacedFromAnotherTier) {
  const auto source = OpenDirectoryStore(folder_ + "/source").value();
  Put(RealDisk(), *source, kLater);
  PutBefore({kKey, kLater});
  {
    const auto store = OpenDirectoryStore(world_ + "/store").value();
    ASSERT_TRUE(store->Delete(kLater).ok());
    ASSERT_TRUE(store->CopyFrom(*source, kLater, {}).ok());
    ASSERT_TRUE(WriteAt(store->Path(kLater).value() + "/core-1.img", "X"));
  }
  RecordingDisk disk(world_);
  disk.can_exchange = GetParam();
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  const Manifest damaged = store->Read(kLater).value(), other = store->Read(kKey).value();
  ASSERT_TRUE(store->CopyFrom(*source, kLater, {.bases = {&damaged, &other}}).ok());
  const size_t done = disk.operations() - 1;
  for (size_t n = 0; n <= disk.operations(); ++n) {
    disk.CutBefore(n, after_, [&] {
      SCOPED_TRACE(testing::Message() << "before operation " << n);
      const auto found = OpenDirectoryStore(after_ + "/store").value();
      EXPECT_TRUE(found->Verify(kKey).ok());
      const absl::Status status = found->Verify(kLater).status();
      EXPECT_TRUE(status.ok() || (n < done && (absl::IsDataLoss(status) || absl::IsNotFound(status))))
          << status;
      if (absl::IsNotFound(status)) {
        EXPECT_FALSE(GetParam()) << "the place is never empty";
        EXPECT_EQ(CountEntries(after_ + "/store/damaged"), 1u);
      }
      if (n >= done) {
        EXPECT_EQ(CountEntries(after_ + "/store/damaged"), 1u);
      }
      EXPECT_EQ(CountEntries(after_ + "/store/staging"), 0u) << "no draft is left";
    });
  }
}

TEST_F(PowerCutTest, DeletionOfWhatAnotherImageShares) {
  PutBefore({kKey});
  PutSharing(RealDisk(), *OpenDirectoryStore(world_ + "/store").value(), kLater);
  RecordingDisk disk(world_);
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  ASSERT_TRUE(store->Delete(kKey).ok());
  const size_t end = disk.operations();
  CutEverywhere(disk, [&](size_t n, const std::vector<ImageKey>& keys) {
    EXPECT_THAT(keys, Contains(kLater));
    if (n == end) {
      EXPECT_THAT(keys, ElementsAre(kLater));
    }
  });
}

TEST_F(PowerCutTest, EncryptedImage) {
  RecordingDisk disk(world_);
  const auto ring = std::make_shared<KeyRing>(ParseSecretKey(std::string(64, '1')).value());
  const auto store =
      OpenDirectoryStore(world_ + "/store", {.keys = ring, .plain_folder = folder_ + "/plain", .disk = &disk})
          .value();
  Put(RealDisk(), *store, kKey);  // the plain files are of no use after a power cut
  const size_t acknowledged = disk.operations() - 1;
  CutEverywhere(disk, [&](size_t n, const std::vector<ImageKey>& keys) {
    EXPECT_THAT(keys, AnyOf(IsEmpty(), ElementsAre(kKey)));
    if (n >= acknowledged) {
      EXPECT_THAT(keys, ElementsAre(kKey));
    }
  });
}

TEST_F(PowerCutTest, DraftThatIsGivenUp) {
  RecordingDisk disk(world_);
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  auto draft = store->Begin(kKey).value();
  Fill(disk, *draft);
  ASSERT_TRUE(draft->Seal({}).ok());
  draft.reset();
  CutEverywhere(disk, [](size_t, const std::vector<ImageKey>& keys) { EXPECT_THAT(keys, IsEmpty()); });
}

TEST_F(PowerCutTest, Deletion) {
  PutBefore({kKey, kOther});
  RecordingDisk disk(world_);
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  ASSERT_TRUE(store->Delete(kKey).ok());
  const size_t end = disk.operations();
  CutEverywhere(disk, [&](size_t n, const std::vector<ImageKey>& keys) {
    EXPECT_THAT(keys, Contains(kOther));
    if (n == end) {
      EXPECT_THAT(keys, ElementsAre(kOther));
    }
  });
}

TEST_F(PowerCutTest, SettingAside) {
  PutBefore({kKey});
  RecordingDisk disk(world_);
  const auto store = OpenDirectoryStore(world_ + "/store", {.disk = &disk}).value();
  ASSERT_TRUE(Quarantine(*store, kKey).ok());
  const size_t end = disk.operations();
  CutEverywhere(disk, [&](size_t n, const std::vector<ImageKey>& keys) {
    const bool kept = std::filesystem::exists(after_ + "/store/damaged") &&
                      !std::filesystem::is_empty(after_ + "/store/damaged");
    EXPECT_NE(kept, keys == std::vector<ImageKey>{kKey}) << "it is in one of the two places";
    if (n == end) {
      EXPECT_THAT(keys, IsEmpty());
    }
  });
}

}  // namespace
}  // namespace siding::store
