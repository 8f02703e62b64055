#include "agent/checkpoint/rehearsal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

// Of this process, which has nothing of the kind but what a test opens.
class RehearsalTest : public ::testing::Test {
 protected:
  RehearsalTest() {
    char name[] = "/tmp/siding-rehearsal-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~RehearsalTest() override { std::filesystem::remove_all(folder_); }
  static std::string Why() { return WhyNotRehearsed(getpid(), Bytes{1 << 20}); }
  UniqueFd Bound(const std::string& name) const {
    UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    return fd;
  }
  std::string folder_;
};

TEST_F(RehearsalTest, NothingStandsInTheWay) { EXPECT_EQ(Why(), ""); }

TEST_F(RehearsalTest, TooLittleMemoryDoes) {
  EXPECT_THAT(WhyNotRehearsed(getpid(), Bytes{1LL << 50}), HasSubstr("would be needed a second time"));
}

TEST_F(RehearsalTest, APipeWithANameDoes) {
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  const UniqueFd pipe(open((folder_ + "/pipe").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_THAT(Why(), HasSubstr("has a pipe with a name"));
}

TEST_F(RehearsalTest, APipeWithoutANameDoesNot) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]), write(ends[1]);
  EXPECT_EQ(Why(), "");
}

TEST_F(RehearsalTest, ALockOnAFileDoes) {
  const UniqueFd file(open((folder_ + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(Why(), "");
  ASSERT_EQ(flock(file.get(), LOCK_EX), 0);
  EXPECT_THAT(Why(), HasSubstr("has a file lock"));
}

TEST_F(RehearsalTest, AUnixSocketWithANameInFilesDoes) {
  const UniqueFd socket = Bound(folder_ + "/socket");
  EXPECT_THAT(Why(), HasSubstr("has a Unix socket with a name"));
}

TEST_F(RehearsalTest, OneWithANameOfTheNetworkDoesNot) {
  const UniqueFd socket = Bound(std::string("\0siding-rehearsal", 17));
  EXPECT_EQ(Why(), "");
}

TEST_F(RehearsalTest, APseudoTerminalDoes) {
  const UniqueFd terminal(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.valid()) GTEST_SKIP() << "there are no pseudo-terminals";
  EXPECT_THAT(Why(), HasSubstr("has a pseudo-terminal"));
}

TEST_F(RehearsalTest, SharedMemoryWithoutAFileDoesNot) {
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(Why(), "");
  munmap(memory, 4096);
}

TEST_F(RehearsalTest, AFileThatWasRemovedDoes) {
  const UniqueFd file(open((folder_ + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(unlink((folder_ + "/file").c_str()), 0);
  EXPECT_THAT(Why(), HasSubstr("has a file that was removed as its descriptor"));
}

}  // namespace
}  // namespace siding
