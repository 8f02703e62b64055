// Names that a restore creates again: a socket's and a removed file's. They lie in a folder of the user's,
// who may put a link to anywhere in its place.
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "agent/criu/criu.h"
#include "agent/node/host_fixture.h"
#include "common/files.h"

namespace siding {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NamesTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (IsSkipped()) return;
    if (!NewCriu(*FindCriu(""))->Check()->acts_on_files_as_user)
      GTEST_SKIP() << "criu was built without criu-files-as-user.patch";
    ASSERT_TRUE(MakeDirectories(own_).ok());
    ASSERT_EQ(chown(own_.c_str(), kUser, kUser), 0);
    ASSERT_TRUE(MakeDirectories(roots_).ok());
    ASSERT_EQ(symlink(roots_.c_str(), link_.c_str()), 0);
  }

  TaskHostOptions Options(const std::string& node) const override {
    TaskHostOptions options = HostTest::Options(node);
    options.criu_path = criu_;
    return options;
  }
  v1::JobSpec Spec() { return Somebodys({"-n", own_}); }
  v1::JobSpec Piper() { return Somebodys({"-p", own_ + "/pipe"}); }
  // What is in root's folder: names, each with its owner.
  std::vector<std::string> AtRoots() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(roots_)) {
      struct stat info {};
      lstat(entry.path().c_str(), &info);
      names.push_back(absl::StrCat(entry.path().filename().string(), " of ", info.st_uid));
    }
    return names;
  }
  void ListenAtRoots() const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/listener", roots_.c_str());
    const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  // In the place of what the patch has made of it.
  void CriuSays(const std::string& name) {
    std::string criu = *ReadFile(*FindCriu(""));
    const std::string said = "files-as-user-11";
    ASSERT_EQ(name.size(), said.size());
    for (size_t at = 0; (at = criu.find(said, at)) != std::string::npos;) criu.replace(at, said.size(), name);
    criu_ = folder_ + "/criu";
    ASSERT_TRUE(WriteFileAtomically(criu_, criu, 0755).ok());
  }
  void Swap() const { renameat2(AT_FDCWD, own_.c_str(), AT_FDCWD, link_.c_str(), RENAME_EXCHANGE); }

  std::string criu_;
  const std::string own_ = folder_ + "/own", roots_ = folder_ + "/roots", link_ = folder_ + "/link";
};

TEST_F(NamesTest, ComeBackAndAreTheUsers) {
  StartHost();
  LaunchCounter(Spec());
  Vacate("1.1");
  Restore(Spec(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  AwaitMoreLines();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(own_)) names.push_back(entry.path().filename());
  EXPECT_THAT(names, ElementsAre("listener"));
  struct stat info {};
  ASSERT_EQ(stat((own_ + "/listener").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, kUser);
}

TEST_F(NamesTest, AreNotMadeWhereALinkLeadsTo) {
  StartHost();
  LaunchCounter(Spec());
  Vacate("1.1");
  Swap();
  Restore(Spec(), "1.1");
  AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_THAT(AtRoots(), IsEmpty());
}

TEST_F(NamesTest, ASocketThatALinkLeadsToIsNotRemoved) {
  StartHost();
  LaunchCounter(Spec());
  Vacate("1.1");
  ListenAtRoots();
  Swap();
  Restore(Spec(), "1.1");
  AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_THAT(AtRoots(), ElementsAre("listener of 0"));
}

TEST_F(NamesTest, APipeComesBackWithWhatIsInIt) {
  StartHost();
  LaunchCounter(Piper());
  Vacate("1.1");
  Restore(Piper(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  AwaitMoreLines();
}

TEST_F(NamesTest, APipeThatALinkLeadsToIsNotWrittenTo) {
  StartHost();
  LaunchCounter(Piper());
  Vacate("1.1");
  const std::string roots = roots_ + "/pipe";
  ASSERT_EQ(mkfifo(roots.c_str(), 0600), 0);
  const UniqueFd pipe(open(roots.c_str(), O_RDWR | O_NONBLOCK));
  Swap();
  Restore(Piper(), "1.1");
  AwaitPhase(v1::RESTORE_FAILED, 2);
  char text;
  EXPECT_EQ(read(pipe.get(), &text, 1), -1);
}

TEST_F(NamesTest, NorIfTheLinkComesAndGoes) {
  StartHost();
  LaunchCounter(Spec());
  Vacate("1.1");
  ListenAtRoots();
  std::atomic<bool> stop{false};
  std::thread flipper([&] {
    while (!stop) Swap();
  });
  for (int incarnation = 2; incarnation < 7; ++incarnation) {
    Restore(Spec(), "1.1", incarnation);
    const auto report = sink_.Await(Task(incarnation), [](const auto& r) {
      return r.phase() == v1::RUNNING || r.phase() == v1::RESTORE_FAILED;
    });
    EXPECT_THAT(AtRoots(), ElementsAre("listener of 0"));
    if (report.phase() != v1::RUNNING) continue;
    v1::ToAgent kill = Command(900, incarnation);
    kill.mutable_kill();
    Order(kill);
    AwaitPhase(v1::EXITED, incarnation);
  }
  stop = true;
  flipper.join();
}

// The same criu, but that it does not say that it knows how to act as the user.
TEST_F(NamesTest, ACriuThatActsAsRootIsNotAskedTo) {
  CriuSays("some-other-names");
  StartHost();
  LaunchCounter(Spec());
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("this node's criu would act on its user's files as root"));
  AwaitMoreLines();
}

TEST_F(NamesTest, NorIsOneThatActsAsTheUserOtherwise) {
  CriuSays("files-as-user-03");
  StartHost();
  LaunchCounter(Spec());
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(),
              HasSubstr("this node's criu was built for another version of siding; get-criu builds one"));
  AwaitMoreLines();
}

}  // namespace
}  // namespace siding
