// What may befall the image of a real job: every damage is found and named, and nothing of it is restored.
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <iostream>

#include "agent/node/host_fixture.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "common/private_mounts_for_test.h"
#include "store/test_support.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

class ImageTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (!IsSkipped()) StartHost();
  }
  // Parks a counter under checkpoint 1.1.
  void MakeImage(const v1::JobSpec& spec) {
    LaunchCounter(spec);
    Dump(2, "1.1");
    AwaitPhase(v1::PREPARED);
    Commit(2);
    AwaitPhase(v1::CHECKPOINTED);
    store_ = OpenDirectoryStore(folder_ + "/shared").value();
    for (const auto& entry : std::filesystem::directory_iterator(image())) files_.push_back(entry.path());
    std::sort(files_.begin(), files_.end());
  }
  std::string image() const { return folder_ + "/shared/images/1.1/0"; }

  void ExpectFound(const std::string& file) const {
    const absl::Status status = store_->Verify({CheckpointId("1.1"), 0}).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << file << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
  }
  // The restore as incarnation `incarnation` fails before there is a process.
  void ExpectRefused(const std::string& file, int incarnation) {
    Restore(Counter(), "1.1", incarnation, incarnation * 100);
    const auto report = AwaitPhase(v1::RESTORE_FAILED, incarnation);
    EXPECT_TRUE(report.image_damaged());
    EXPECT_THAT(report.error(), HasSubstr(file));
    EXPECT_FALSE(
        std::filesystem::exists(absl::StrCat(tasks_folder(), "/", job_, ".", incarnation, ".0/request.json")))
        << "the shim has got no orders";
  }

  std::unique_ptr<ImageStore> store_;
  std::vector<std::string> files_;
};

TEST_F(ImageTest, FlippedBitInAnyFileIsNamedAndNothingIsRestored) {
  MakeImage(Counter());
  int flips = 0, incarnation = 2;
  for (const std::string& file : files_) {
    const std::string good = ReadFile(file).value();
    // Every bit of the smallest files would take hours: of each file bits in 16 places, the ends among them.
    const size_t places = std::min<size_t>(16, good.size());
    for (size_t i = 0; i < places; ++i, ++flips) {
      const size_t at = places == 1 ? 0 : i * (good.size() - 1) / (places - 1);
      const char flipped = static_cast<char>(good[at] ^ (1 << i % 8));
      ASSERT_TRUE(store::WriteAt(file, std::string(1, flipped), static_cast<off_t>(at)));
      ExpectFound(file);
      if (i == places / 2) ExpectRefused(file, incarnation++);
      ASSERT_TRUE(store::WriteAt(file, good.substr(at, 1), static_cast<off_t>(at)));
    }
  }
  EXPECT_TRUE(store_->Verify({CheckpointId("1.1"), 0}).ok()) << "all has been put back";
  std::cout << files_.size() << " files, " << flips << " flipped bits, " << incarnation - 2
            << " restores refused\n";
}

TEST_F(ImageTest, TornOrMissingFileIsNamedAndNothingIsRestored) {
  MakeImage(Counter());
  int torn = 0, incarnation = 2;
  for (const std::string& file : files_) {
    const auto size = std::filesystem::file_size(file);
    const std::string kept = folder_ + "/kept";
    std::filesystem::rename(file, kept);
    ExpectFound(file);
    ExpectRefused(file, incarnation++);
    for (const auto left : {size - 1, size / 2, size / 4096 * 4096, uintmax_t{0}}) {
      if (left >= size) continue;
      std::filesystem::copy_file(kept, file);
      std::filesystem::resize_file(file, left);
      ExpectFound(file);
      std::filesystem::resize_file(file, size);  // zeros where the rest was, which may have been zeros
      if (ReadFile(file).value() != ReadFile(kept).value()) {
        ExpectFound(file);
        ++torn;
      }
      std::filesystem::remove(file);
      ++torn;
    }
    std::filesystem::create_symlink(kept, file);
    ExpectFound(file);
    std::filesystem::remove(file);
    std::filesystem::rename(kept, file);
  }
  EXPECT_TRUE(store_->Verify({CheckpointId("1.1"), 0}).ok()) << "all has been put back";
  std::cout << files_.size() << " files missing, " << torn << " torn, " << incarnation - 2
            << " restores refused\n";
}

TEST_F(ImageTest, ImageOfAnyUserIsForRootOnly) {
  v1::JobSpec spec = Counter();
  spec.set_uid(65534);
  spec.set_gid(65534);
  MakeImage(spec);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/shared")) {
    struct stat info {};
    ASSERT_EQ(lstat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, geteuid()) << entry.path();
    EXPECT_EQ(info.st_mode & 07777, S_ISDIR(info.st_mode) ? 0700u : 0600u) << entry.path();
  }
}

class ScrubbedImageTest : public ImageTest {
 protected:
  TaskHostOptions Options(const std::string& node) const override {
    TaskHostOptions options = ImageTest::Options(node);
    options.scrub.interval = std::chrono::hours(1);
    return options;
  }
};

TEST_F(ScrubbedImageTest, HeartbeatNamesADamagedImage) {
  MakeImage(Counter());
  ASSERT_TRUE(store::WriteAt(files_[0], "x", 3));
  host_.reset();
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/n1/scrubbed", "0").ok());  // long ago
  StartHost();
  ASSERT_TRUE(Eventually([&] { return host().Measure().damaged_size() == 1; }));
  EXPECT_EQ(host().Measure().damaged(0).checkpoint(), "1.1");
  EXPECT_THAT(host().Measure().damaged(0).problem(), HasSubstr(files_[0]));
  EXPECT_GT(host().Measure().scrubbed_bytes(), 0);
}

class EncryptedImageTest : public ImageTest {
 protected:
  TaskHostOptions Options(const std::string& node) const override {
    TaskHostOptions options = ImageTest::Options(node);
    options.keys = std::make_shared<store::KeyRing>(store::ParseSecretKey(std::string(64, digit_)).value());
    options.plain_dir = folder_ + "/plain";
    return options;
  }
  size_t PlainFiles() const {
    size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/plain"))
      files += entry.is_regular_file();
    return files;
  }
  char digit_ = '1';
};

TEST_F(EncryptedImageTest, JobGoesOnAndNothingPlainIsLeft) {
  MakeImage(Counter());
  EXPECT_EQ(PlainFiles(), 0u);
  EXPECT_FALSE(store_->Read({CheckpointId("1.1"), 0})->encryption_key.empty());
  Restore(Counter(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_EQ(PlainFiles(), 0u);
  AwaitMoreLines();
}

TEST_F(EncryptedImageTest, WithAnotherKeyNothingIsRestoredAndTheImageIsNotBlamed) {
  MakeImage(Counter());
  digit_ = '2';
  host_.reset();
  StartHost();
  Restore(Counter(), "1.1");
  const auto report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_THAT(report.error(), HasSubstr("is encrypted with key "));
  EXPECT_TRUE(report.no_key());
  EXPECT_FALSE(report.image_damaged());
  EXPECT_EQ(PlainFiles(), 0u);
}

TEST_F(EncryptedImageTest, AbortedDumpLeavesNothingPlain) {
  LaunchCounter(Counter());
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Abort(2);
  AwaitFailure(2);
  EXPECT_EQ(PlainFiles(), 0u);
}

// A tier on a disk that is full at one moment of the dump after the other.
class FullTierTest : public ImageTest {
 protected:
  void FillEverywhere(v1::Tier tier, const std::string& root) {
    host_.reset();
    for (const std::string name : {"/local-tier", "/shared-tier"})
      std::filesystem::remove(folder_ + "/n1" + name);
    std::filesystem::create_directories(root);
    if (EnterPrivateMounts() && mount("none", root.c_str(), "tmpfs", 0, "size=64m,mode=700") == 0)
      mounted_ = root;
    if (mounted_.empty()) GTEST_SKIP() << "cannot mount a small tmpfs";
    StartHost();
    LaunchCounter(Counter());
    int failed = 0;
    for (int64_t kib = 4, op = 2; !IsPreparedWithin(tier, root, kib, op); ++op, ++failed) {
      const auto report = AwaitFailure(op);
      EXPECT_THAT(report.error(), HasSubstr("No space left")) << kib << " KiB";
      EXPECT_THAT(report.error(), HasSubstr(root)) << "says what was full";
      EXPECT_TRUE(std::filesystem::is_empty(root + "/staging"));
      EXPECT_TRUE(std::filesystem::is_empty(root + "/images"));
      AwaitMoreLines();
      kib += kib < 400 ? 12 : kib / 8;
    }
    std::cout << failed << " sizes of a disk on which the dump failed\n";
  }
  void TearDown() override {
    host_.reset();
    if (!mounted_.empty()) {
      EXPECT_EQ(umount2(mounted_.c_str(), MNT_DETACH), 0);
    }
  }

 private:
  std::string mounted_;

  bool IsPreparedWithin(v1::Tier tier, const std::string& root, int64_t kib, int64_t op) {
    EXPECT_EQ(mount("none", root.c_str(), "tmpfs", MS_REMOUNT, absl::StrCat("size=", kib, "k").c_str()), 0);
    v1::ToAgent command = Command(op);
    command.mutable_dump()->set_checkpoint("1.1");
    command.mutable_dump()->set_tier(tier);
    Order(command);
    const auto report =
        sink_.Await(Task(), [&](const auto& r) { return r.failed_op() == op || r.phase() == v1::PREPARED; });
    return report.phase() == v1::PREPARED;
  }
};

TEST_F(FullTierTest, SharedTier) { FillEverywhere(v1::SHARED, folder_ + "/shared"); }

TEST_F(FullTierTest, LocalTier) { FillEverywhere(v1::LOCAL, folder_ + "/n1/store"); }

}  // namespace
}  // namespace siding
