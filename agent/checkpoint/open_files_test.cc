#include "agent/checkpoint/open_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/precheck.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/checksum.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::StatusOr<FileRemedy>& result) {
  return std::string(result.status().message());
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/siding-files-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

TEST(JudgeFile, AppendedFileIsCutBack) {
  EXPECT_EQ(*JudgeFile({"/out", true, 100, 1}, {true, true, 150, 2}), FileRemedy::kCutBack);
  EXPECT_EQ(*JudgeFile({"/out", true, 100, 1}, {true, true, 100, 2}), FileRemedy::kNone);
}

TEST(JudgeFile, ShorterMissingOrReplacedIsAnErrorThatNamesIt) {
  EXPECT_THAT(Message(JudgeFile({"/out", true, 100, 1}, {true, true, 50, 1})),
              HasSubstr("/out has changed size (100 -> 50"));
  EXPECT_THAT(Message(JudgeFile({"/out", true, 100, 1}, {})), HasSubstr("/out has vanished"));
  EXPECT_FALSE(JudgeFile({"/out", true, 100, 1}, {true, false, 100, 1}).ok());
}

TEST(JudgeFile, WhatALongerOneInItsPlaceHasBeyondIsNotCutOff) {
  const OpenFile log{"/log", true, 100, 1, true, 7};
  EXPECT_THAT(Message(JudgeFile(log, {true, true, 150, 2, 8})),
              HasSubstr("/log has been replaced by a longer one"));
  EXPECT_EQ(*JudgeFile(log, {true, true, 100, 2, 8}), FileRemedy::kNone);
}

TEST(JudgeFile, ARotatedOneIsGoneOnBehindWhereTheUserSaysSo) {
  const OpenFile log{"/log", true, 100, 1, true, 7};
  EXPECT_EQ(*JudgeFile(log, {}, true), FileRemedy::kAppend);
  EXPECT_EQ(*JudgeFile(log, {true, true, 0, 2, 7}, true), FileRemedy::kAppend);
  EXPECT_EQ(*JudgeFile(log, {true, true, 20, 2, 8}, true), FileRemedy::kAppend);
  EXPECT_EQ(*JudgeFile(log, {true, true, 1 << 20, 2, 8}, true), FileRemedy::kAppend);
  EXPECT_EQ(*JudgeFile(log, {true, true, 150, 2, 7}, true), FileRemedy::kCutBack) << "its own lines";
  EXPECT_FALSE(JudgeFile(log, {true, false, 20, 2, 8}, true).ok());
}

TEST(JudgeFile, NotOneThatIsWrittenElsewhereThanAtItsEnd) {
  EXPECT_FALSE(JudgeFile({"/log", true, 100, 1, false, 7}, {}, true).ok());
}

TEST(JudgeFile, OtherFilesMustBeAsTheyWere) {
  EXPECT_EQ(*JudgeFile({"/in", false, 100, 1}, {true, true, 100, 1}), FileRemedy::kNone);
  EXPECT_THAT(Message(JudgeFile({"/in", false, 100, 1}, {true, true, 100, 2})),
              HasSubstr("/in has been modified"));
  EXPECT_FALSE(JudgeFile({"/in", false, 100, 1}, {true, true, 101, 1}).ok());
}

TEST(JudgeFile, OneThatIsOnlyReadIsJudgedByItsContents) {
  const OpenFile script{"/in", false, 100, 1, false, 7, 0600, "xxh3:a"};
  EXPECT_EQ(*JudgeFile(script, {true, true, 100, 2, 8, "xxh3:a"}), FileRemedy::kNone) << "touched, copied";
  EXPECT_THAT(Message(JudgeFile(script, {true, true, 100, 2, 7, "xxh3:b"})),
              HasSubstr("/in has got other contents"));
  EXPECT_FALSE(NeedsContent(script, {true, true, 100, 1, 7, ""})) << "its times say that it is the same";
}

TEST(OpenFiles, JsonRoundTrip) {
  const std::vector<OpenFile> files = {{"/a b", true, 5, 77, true, 1234, 0640, "xxh3:1"},
                                       {"/c", false, 0, -1}};
  EXPECT_EQ(*OpenFilesFromJson(OpenFilesToJson(files)), files);
  EXPECT_TRUE(absl::IsDataLoss(OpenFilesFromJson("{").status()));
}

TEST(OpenFiles, OurOwnAreSeen) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "in", "hello").ok());
  UniqueFd in(open((folder / "in").c_str(), O_RDONLY));
  UniqueFd out(open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  UniqueFd random(open((folder / "random").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(write(random.get(), "abcd", 4), 4);
  ASSERT_EQ(lseek(random.get(), 1, SEEK_SET), 1);
  UniqueFd log(open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  UniqueFd reader(open((folder / "log").c_str(), O_RDONLY));
  FileContents contents;
  const auto files = RecordOpenFiles(getpid(), contents);
  ASSERT_TRUE(files.ok());
  const auto find = [&](const std::string& name) {
    return std::find_if(files->begin(), files->end(),
                        [&](const OpenFile& f) { return f.path == folder / name; });
  };
  ASSERT_NE(find("in"), files->end());
  EXPECT_FALSE(find("in")->append);
  EXPECT_EQ(find("in")->size, 5);
  EXPECT_EQ(find("in")->content, store::ChecksumOf("hello"));
  ASSERT_NE(find("out"), files->end());
  EXPECT_TRUE(find("out")->append);
  EXPECT_TRUE(find("out")->always_appends);
  EXPECT_EQ(find("out")->mode, 0600u);
  ASSERT_NE(find("log"), files->end());
  EXPECT_TRUE(find("log")->append);
  EXPECT_FALSE(find("log")->always_appends) << "it is read as well, at some place";
  ASSERT_NE(find("random"), files->end());
  EXPECT_FALSE(find("random")->append);
  EXPECT_EQ(find("random")->content, "") << "it may be written to";
}

TEST(RecordOpenFiles, ASharedMappingCountsWhereverItIs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, for /proc/PID/map_files";
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "mapped", std::string(4096, 'x')).ok());
  void* const low = reinterpret_cast<void*>(0x1000000);  // maps writes it with a zero before it
  UniqueFd fd(open((folder / "mapped").c_str(), O_RDWR));
  ASSERT_EQ(mmap(low, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd.get(), 0), low);
  fd.Reset();
  FileContents contents;
  const auto files = RecordOpenFiles(getpid(), contents);
  munmap(low, 4096);
  ASSERT_TRUE(files.ok());
  EXPECT_TRUE(std::any_of(files->begin(), files->end(),
                          [&](const OpenFile& file) { return file.path == folder / "mapped"; }));
}

TEST(PutFilesBack, CutsBackAndSaysSo) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "out", "12345678").ok());
  const auto notes = PutFilesBack({{folder / "out", true, 4, 0}});
  ASSERT_TRUE(notes.ok());
  EXPECT_EQ(*ReadFile(folder / "out"), "1234");
  EXPECT_THAT(notes->notes, ::testing::ElementsAre(folder / "out" + " cut back from 8 to 4 bytes"));
}

TEST(PutFilesBack, NothingIsCutIfAnythingIsWrong) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "out", "12345678").ok());
  EXPECT_FALSE(PutFilesBack({{folder / "out", true, 4, 0}, {folder / "gone", false, 1, 0}}).ok());
  EXPECT_EQ(*ReadFile(folder / "out"), "12345678");
}

TEST(PutFilesBack, ATouchedFileIsAsItWas) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "in", "hello").ok());
  const OpenFile file{folder / "in", false, 5, 0, false, 1, 0600, store::ChecksumOf("hello")};
  EXPECT_TRUE(PutFilesBack({file}).ok());
  ASSERT_TRUE(WriteFileAtomically(folder / "in", "hallo").ok());
  EXPECT_THAT(std::string(PutFilesBack({file}).status().message()), HasSubstr("has got other contents"));
}

TEST(PutFilesBack, FollowsNoSymbolicLink) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "victim", "12345678").ok());
  ASSERT_EQ(symlink((folder / "victim").c_str(), (folder / "out").c_str()), 0);
  EXPECT_FALSE(PutFilesBack({{folder / "out", true, 4, 0}}).ok());
  EXPECT_EQ(*ReadFile(folder / "victim"), "12345678");
}

TEST(PutFilesBack, ARotatedLogStaysAsItIs) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFileAtomically(folder / "log", "new\n", 0644).ok());
  const auto back = PutFilesBack({{folder / "log", true, 100, 0, true, 1, 0600}}, true);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->rotated);
  EXPECT_EQ(*ReadFile(folder / "log"), "new\n");
  EXPECT_EQ(std::filesystem::status(folder / "log").permissions(), std::filesystem::perms(0644));
  EXPECT_THAT(back->notes, ::testing::ElementsAre(HasSubstr("has been rotated")));
}

TEST(PutFilesBack, OneThatIsGoneIsMadeAnew) {
  const TemporaryFolder folder;
  ASSERT_TRUE(PutFilesBack({{folder / "log", true, 100, 0, true, 1, 0640}}, true).ok());
  EXPECT_EQ(std::filesystem::file_size(folder / "log"), 0u);
  EXPECT_EQ(std::filesystem::status(folder / "log").permissions(), std::filesystem::perms(0640));
}

TEST(PutFilesBack, ALinkInThePlaceOfALogIsNotFollowed) {
  const TemporaryFolder folder;
  ASSERT_EQ(symlink((folder / "victim").c_str(), (folder / "log").c_str()), 0);
  EXPECT_FALSE(PutFilesBack({{folder / "log", true, 100, 0, true, 1, 0640}}, true).ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "victim"));
}

TEST(CheckIsThere, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_TRUE(CheckIsThere({{folder / "", "working folder"}}).ok());
  EXPECT_THAT(std::string(CheckIsThere({{folder / "gone", "program"}}).message()),
              HasSubstr("program " + (folder / "gone") + " is not there any more"));
}

TEST(RecordHeld, HasTheProgramAndTheWorkingFolder) {
  const auto held = RecordHeld(getpid());
  EXPECT_EQ(held.at(std::filesystem::read_symlink("/proc/self/exe")), "program");
  EXPECT_EQ(held.at(std::filesystem::current_path()), "working folder");
  EXPECT_EQ(*HeldFromJson(HeldToJson(held)), held);
  EXPECT_TRUE(absl::IsDataLoss(HeldFromJson("[1]").status()));
}

TEST(Precheck, KnowsWhatCriuCannotDump) {
  EXPECT_EQ(WhyNotDumpableLink("anon_inode:[io_uring]", false), "uses io_uring");
  EXPECT_EQ(WhyNotDumpableLink("anon_inode:[perf_event]", false), "uses perf_event");
  EXPECT_EQ(WhyNotDumpableLink("/dev/sda", true), "has the device /dev/sda open");
  EXPECT_EQ(WhyNotDumpableLink("/dev/null", true), "");
  EXPECT_EQ(WhyNotDumpableLink("/dev/shm/x", false), "");
  EXPECT_EQ(WhyNotDumpableLink("anon_inode:[eventpoll]", false), "");
}

std::string Timer(int ticks, int flags, int value, int interval) {
  return absl::StrCat("pos:\t0\nflags:\t02\nclockid: 1\nticks: ", ticks, "\nsettime flags: 0", flags,
                      "\nit_value: (", value, ", 0)\nit_interval: (0, ", interval, ")\n");
}

TEST(Precheck, ATimerThatRepeatsWouldStandStill) {
  EXPECT_NE(WhyNotDumpableTimer(Timer(0, 0, 1, 100)), "");
  EXPECT_NE(WhyNotDumpableTimer(Timer(3, 0, 0, 100)), "") << "it has expired";
}

TEST(Precheck, OtherTimersGoOn) {
  EXPECT_EQ(WhyNotDumpableTimer(Timer(0, 0, 1, 0)), "") << "once";
  EXPECT_EQ(WhyNotDumpableTimer(Timer(0, 0, 0, 100)), "") << "it stands still already";
  EXPECT_EQ(WhyNotDumpableTimer(Timer(1, 1, 0, 100)), "") << "CRIU starts those of absolute times anew";
  EXPECT_EQ(WhyNotDumpableTimer(""), "");
}

TEST(OpenFilesFromJson, NumbersAreWhole) {
  const std::string file = R"([{"path": "/x", "append": false, "size": 1e300, "mtime_ns": 0}])";
  EXPECT_TRUE(absl::IsDataLoss(OpenFilesFromJson(file).status()));
}

}  // namespace
}  // namespace siding
