#include "agent/node/image_copies.h"

#include <future>

#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "store/disk.h"
#include "store/test_support.h"

namespace siding {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Holds every write until it may go on.
class GateDisk final : public store::Disk {
 public:
  void Open() {
    {
      MutexLock lock(mutex_);
      open_ = true;
    }
    changed_.NotifyAll();
  }
  int Create(const std::string& path) override { return real_.Create(path); }
  ssize_t Write(int fd, const void* data, size_t size) override {
    MutexLock lock(mutex_);
    changed_.Wait(mutex_, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_; });
    return real_.Write(fd, data, size);
  }
  int SyncFile(int fd) override { return real_.SyncFile(fd); }
  int SyncFolder(const std::string& path) override { return real_.SyncFolder(path); }
  int MakeFolder(const std::string& path) override { return real_.MakeFolder(path); }
  int Rename(const std::string& from, const std::string& to) override { return real_.Rename(from, to); }
  int Exchange(const std::string& one, const std::string& other) override {
    return real_.Exchange(one, other);
  }
  int Link(const std::string& file, const std::string& name) override { return real_.Link(file, name); }
  int RemoveFile(const std::string& path) override { return real_.RemoveFile(path); }
  int RemoveFolder(const std::string& path) override { return real_.RemoveFolder(path); }
  int64_t FreeSpace(const std::string& path) override { return real_.FreeSpace(path); }

 private:
  store::Disk& real_ = store::RealDisk();
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

class ImageCopiesTest : public store::StoreTest {
 protected:
  ImageCopiesTest() {
    shared_ = OpenDirectoryStore(folder_ + "/shared").value();
    shared_ = OpenDirectoryStore(folder_ + "/shared", {.disk = &gate_}).value();
    copies_ = std::make_unique<ImageCopies>([this](v1::Tier tier) -> absl::StatusOr<ImageStore*> {
      if (tier == v1::SHARED && !has_shared_) return absl::FailedPreconditionError("there is none");
      return tier == v1::SHARED ? shared_.get() : store_.get();
    });
  }
  ~ImageCopiesTest() override { gate_.Open(); }

  static v1::CopyCheckpoint OrderOf(const ImageKey& key) {
    v1::CopyCheckpoint order;
    order.set_checkpoint(key.checkpoint.value());
    order.set_rank(key.rank);
    return order;
  }
  std::future<absl::Status> Order(const v1::CopyCheckpoint& order) {
    auto made = std::make_shared<std::promise<absl::Status>>();
    auto future = made->get_future();
    copies_->Order(order, [made](const absl::Status& status) { made->set_value(status); });
    return future;
  }
  std::future<absl::Status> Order(const ImageKey& key) { return Order(OrderOf(key)); }
  static absl::Status ResultOf(std::future<absl::Status>& made) {
    return Comes(made) ? made.get() : absl::DeadlineExceededError("no answer");
  }

  const ImageKey other_{CheckpointId("42.4"), 1};
  bool has_shared_ = true;
  GateDisk gate_;
  std::unique_ptr<ImageStore> shared_;
  std::unique_ptr<ImageCopies> copies_;
};

TEST_F(ImageCopiesTest, TheImageIsInTheSharedTier) {
  Put(key_);
  gate_.Open();
  auto made = Order(key_);
  EXPECT_TRUE(ResultOf(made).ok());
  EXPECT_TRUE(shared_->Verify(key_).ok());
  EXPECT_EQ(copies_->written(), Bytes{7});
  EXPECT_THAT(copies_->UnderWay(), IsEmpty());
}

TEST_F(ImageCopiesTest, WithoutASharedTierItSaysSo) {
  Put(key_);
  has_shared_ = false;
  auto made = Order(key_);
  EXPECT_THAT(ResultOf(made).message(), HasSubstr("there is none"));
}

TEST_F(ImageCopiesTest, ABaseIsShared) {
  gate_.Open();
  Put(key_);
  Put(other_);
  const ImageKey base{CheckpointId("42.3"), 1};
  Put(base);
  auto first = Order(base);
  ASSERT_TRUE(ResultOf(first).ok());
  v1::CopyCheckpoint order = OrderOf(other_);
  order.set_base("42.3");
  auto second = Order(order);
  EXPECT_TRUE(ResultOf(second).ok());
  EXPECT_EQ(copies_->written(), Bytes{7}) << "of the first alone";
}

TEST_F(ImageCopiesTest, OneUnderWayIsTold) {
  Put(key_);
  auto made = Order(key_);
  ASSERT_THAT(copies_->UnderWay(), SizeIs(1));
  EXPECT_EQ(copies_->UnderWay()[0].checkpoint(), "42.3");
  gate_.Open();
  EXPECT_TRUE(ResultOf(made).ok());
}

TEST_F(ImageCopiesTest, AskedAgainItAnswersTheSecondTimeOnly) {
  Put(key_);
  auto first = Order(key_), second = Order(key_);
  gate_.Open();
  EXPECT_TRUE(ResultOf(second).ok());
  EXPECT_THROW((void)first.get(), std::future_error) << "nobody is left to say it";
}

TEST_F(ImageCopiesTest, CalledOffItLeavesNothing) {
  Put(key_);
  auto made = Order(key_);
  v1::CopyCheckpoint pause = OrderOf(key_);
  pause.set_pause(true);
  made = Order(pause);
  gate_.Open();
  EXPECT_TRUE(copies_->CallOff(key_).ok());
  EXPECT_TRUE(absl::IsCancelled(ResultOf(made)));
  EXPECT_THAT(shared_->List().value(), IsEmpty());
}

TEST_F(ImageCopiesTest, WhatWaitsForItsTurnIsCalledOffAtOnce) {
  Put(key_);
  Put(other_);
  auto first = Order(key_), second = Order(other_);
  EXPECT_TRUE(copies_->CallOff(other_).ok());
  EXPECT_TRUE(absl::IsCancelled(ResultOf(second)));
  gate_.Open();
  EXPECT_TRUE(ResultOf(first).ok());
}

TEST_F(ImageCopiesTest, WhatDoesNotEndIsSaid) {
  Put(key_);
  auto made = Order(key_);
  ASSERT_TRUE(Eventually([&] { return store::CountEntries(folder_ + "/shared/staging") > 0; }))
      << "it has begun";
  EXPECT_TRUE(absl::IsUnavailable(copies_->CallOff(key_)));
  gate_.Open();
  EXPECT_TRUE(absl::IsCancelled(ResultOf(made)));
}

TEST_F(ImageCopiesTest, WhatIsNotCopiedIsCalledOff) { EXPECT_TRUE(copies_->CallOff(key_).ok()); }

TEST_F(ImageCopiesTest, APauseEndsWithTheNextOrder) {
  Put(key_);
  v1::CopyCheckpoint order = OrderOf(key_);
  order.set_pause(true);
  auto paused = Order(order);
  gate_.Open();
  auto made = Order(key_);
  EXPECT_TRUE(ResultOf(made).ok());
}

TEST_F(ImageCopiesTest, WhatPausesFromTheBeginningIsNotBegun) {
  Put(key_);
  Put(other_);
  v1::CopyCheckpoint order = OrderOf(key_);
  order.set_pause(true);
  auto paused = Order(order), behind = Order(other_);
  gate_.Open();
  EXPECT_THAT(shared_->List().value(), IsEmpty());
  EXPECT_TRUE(copies_->CallOff(key_).ok());
  EXPECT_TRUE(absl::IsCancelled(ResultOf(paused)));
  EXPECT_TRUE(ResultOf(behind).ok());
}

TEST_F(ImageCopiesTest, AnEarlierImageOfTheTaskTakesNoPlace) {
  const ImageKey later{CheckpointId("42.10"), 0};
  Put(key_);
  Put(later);
  auto first = Order(later), second = Order(key_);
  gate_.Open();
  EXPECT_TRUE(ResultOf(first).ok());
  EXPECT_TRUE(ResultOf(second).ok());
}

TEST_F(ImageCopiesTest, ALaterImageOfTheTaskTakesThePlaceOfTheEarlier) {
  const ImageKey later{CheckpointId("42.4"), 0};
  Put(key_);
  Put(later);
  auto first = Order(key_);
  ASSERT_TRUE(Eventually([&] { return store::CountEntries(folder_ + "/shared/staging") > 0; }))
      << "it has begun";
  auto second = Order(later);
  gate_.Open();
  EXPECT_TRUE(absl::IsCancelled(ResultOf(first)));
  EXPECT_TRUE(ResultOf(second).ok());
}

TEST_F(ImageCopiesTest, ImagesOfOtherRanksAndJobsAreCopiedToo) {
  const ImageKey job{CheckpointId("421.4"), 0};
  for (const ImageKey& key : {key_, other_, job}) Put(key);
  auto first = Order(key_), second = Order(other_), third = Order(job);
  gate_.Open();
  for (auto* made : {&first, &second, &third}) EXPECT_TRUE(ResultOf(*made).ok());
}

TEST_F(ImageCopiesTest, ItsEndEndsWhatPauses) {
  Put(key_);
  v1::CopyCheckpoint order = OrderOf(key_);
  order.set_pause(true);
  auto paused = Order(order);
  gate_.Open();
  copies_.reset();
  EXPECT_THAT(shared_->List().value(), IsEmpty());
}

}  // namespace
}  // namespace siding
