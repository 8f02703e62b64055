// What a criu with our patch does with areas that it is told (agent/memory/known_areas.h), against this
// machine's.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/criu/criu.h"
#include "agent/memory/known_areas.h"
#include "agent/memory/pagemap.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

// A process that maps a page at each SIGUSR1.
class KnownAreasDumpTest : public ::testing::Test {
 protected:
  KnownAreasDumpTest() {
    char name[] = "/tmp/siding-areas-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~KnownAreasDumpTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  void SetUp() override {
    const auto path = FindCriu("");
    if (geteuid() != 0 || !path.ok()) GTEST_SKIP() << "needs root and a criu";
    criu_ = NewCriu(*path);
    const auto traits = criu_->Check();
    if (!traits.ok() || traits->kind() != CriuKind::kOurs) GTEST_SKIP() << "needs a criu with our patch";
    pid_ = fork();
    if (pid_ != 0) {
      ASSERT_TRUE(PollUntil([&] { return HearsSignal(pid_, SIGUSR1); }, kPatience));
      return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    syscall(SYS_close_range, 3, ~0U, 0);
    signal(SIGUSR1, [](int) { (void)mmap(nullptr, 1 << 12, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0); });
    for (;;) pause();
  }

  std::string Maps() const { return ReadFile(absl::StrCat("/proc/", pid_, "/maps")).value(); }

  // Its memory's description in an image that is made with these areas.
  std::string Dump(const std::map<pid_t, int>& known_areas) {
    CriuDump dump;
    dump.pid = pid_;
    dump.image_folder = dump.work_folder = folder_ + "/" + std::to_string(number_++);
    std::filesystem::create_directory(dump.image_folder);
    dump.keep_running = dump.skip_network_lock = true;
    dump.known_areas = known_areas;
    EXPECT_EQ(criu_->Dump(dump, [](const StillHeld&) { return absl::OkStatus(); }), absl::OkStatus());
    return ReadFile(absl::StrCat(dump.image_folder, "/mm-", pid_, ".img")).value_or("");
  }

  std::string folder_;
  std::unique_ptr<Criu> criu_;
  pid_t pid_ = 0;
  int number_ = 0;
};

TEST_F(KnownAreasDumpTest, AnImageIsAsWithoutThem) {
  const std::string without = Dump({});
  KnownAreas known = KnownAreas::Make({pid_}).value();
  known.Read();
  EXPECT_EQ(known.Check(), absl::OkStatus());
  EXPECT_FALSE(without.empty());
  EXPECT_EQ(Dump(known.files()), without);
}

TEST_F(KnownAreasDumpTest, TheyAreBelieved) {
  const std::string without = Dump({});
  KnownAreas known = KnownAreas::Make({pid_}).value();
  known.Read();
  const int file = known.files().at(pid_);
  std::string text(1 << 20, '\0');
  text.resize(static_cast<size_t>(pread(file, text.data(), text.size(), 0)));
  const std::string other = absl::StrReplaceAll(text, {{"VmFlags: ", "VmFlags: dd "}});
  ASSERT_EQ(pwrite(file, other.data(), other.size(), 0), static_cast<ssize_t>(other.size()));
  EXPECT_NE(Dump(known.files()), without);
}

TEST_F(KnownAreasDumpTest, WhereTheMappingsAreOthersByNowTheyAreNot) {
  const std::string before = Maps();
  KnownAreas known = KnownAreas::Make({pid_}).value();
  known.Read();
  kill(pid_, SIGUSR1);
  ASSERT_TRUE(PollUntil([&] { return Maps() != before; }, kPatience));
  EXPECT_EQ(Dump(known.files()), Dump({}));
}

TEST_F(KnownAreasDumpTest, WhereNoneWereReadThereAreNone) {
  const KnownAreas known = KnownAreas::Make({pid_}).value();
  EXPECT_EQ(Dump(known.files()), Dump({}));
}

}  // namespace
}  // namespace siding
