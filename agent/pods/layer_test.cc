#include "agent/pods/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr off_t kHole = 3 << 20;

std::string Attributes(const std::string& path) {
  std::string names(1 << 12, '\0');
  const ssize_t size = llistxattr(path.c_str(), names.data(), names.size());
  names.resize(std::max<ssize_t>(size, 0));
  std::map<std::string, std::string> all;
  for (size_t at = 0; at < names.size(); at += std::strlen(&names[at]) + 1) {
    std::string value(1 << 10, '\0');
    value.resize(std::max<ssize_t>(lgetxattr(path.c_str(), &names[at], value.data(), value.size()), 0));
    all[&names[at]] = value;
  }
  std::string text;
  for (const auto& [name, value] : all) absl::StrAppend(&text, " ", name, "=", value);
  return text;
}

// For a message that can be read.
std::string Short(const std::string& text) {
  if (text.size() <= 40) return text;
  return absl::StrCat(text.substr(0, 40), "... ", text.size(), " bytes, ", std::hash<std::string>()(text));
}

// All that is to be the same afterwards, of each name below the folder. Of a hard link: the first of its
// names.
std::map<std::string, std::string> Listing(const std::string& folder) {
  std::map<std::string, std::string> all;
  std::map<ino_t, std::string> names;
  std::set<std::string> paths = {folder};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) paths.insert(entry.path());
  for (const std::string& path : paths) {
    struct stat about = {};
    EXPECT_EQ(lstat(path.c_str(), &about), 0) << path;
    const std::string name = path.substr(folder.size());
    std::string text = absl::StrCat(absl::Hex(about.st_mode), " ", about.st_uid, ":", about.st_gid, " ",
                                    about.st_mtim.tv_sec, ".", about.st_mtim.tv_nsec, Attributes(path));
    if (S_ISREG(about.st_mode))
      absl::StrAppend(&text, " is ", names.try_emplace(about.st_ino, name).first->second, " with ",
                      Short(ReadFile(path).value_or("?")));
    if (S_ISLNK(about.st_mode))
      absl::StrAppend(&text, " to ", Short(std::filesystem::read_symlink(path).string()));
    if (S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode))
      absl::StrAppend(&text, " ", major(about.st_rdev), ":", minor(about.st_rdev));
    all[name] = text;
  }
  return all;
}

class LayerTest : public ::testing::Test {
 protected:
  LayerTest() {
    char name[] = "/tmp/siding-layer-XXXXXX";
    folder_ = mkdtemp(name);
    layer_ = folder_ + "/layer";
    next_ = folder_ + "/next";
    archive_ = folder_ + "/archive.tar";
    std::filesystem::create_directory(layer_);
    std::filesystem::create_directory(next_);
  }
  ~LayerTest() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to change the root of a process";
  }

  // Where in the layer.
  std::string At(const std::string& name) const { return layer_ + "/" + name; }
  static void Write(const std::string& path, const std::string& content = "content") {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    EXPECT_TRUE(WriteFileAtomically(path, content).ok()) << path;
  }
  static void WriteAt(const std::string& path, off_t offset, const std::string& content) {
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(pwrite(fd.get(), content.data(), content.size(), offset), static_cast<ssize_t>(content.size()));
  }
  static void SetTime(const std::string& path, time_t seconds, long nanoseconds) {
    const timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << path;
  }
  static void Hide(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    EXPECT_EQ(mknod(path.c_str(), S_IFCHR | 0600, makedev(0, 0)), 0) << path;
  }
  static void Attribute(const std::string& path, const std::string& name, const std::string& value) {
    EXPECT_EQ(lsetxattr(path.c_str(), name.c_str(), value.data(), value.size(), 0), 0) << path << " " << name;
  }
  void Save() {
    const absl::Status saved = SaveLayer(layer_, archive_);
    ASSERT_TRUE(saved.ok()) << saved;
  }
  void PutBack() {
    const absl::Status back = PutLayerBack(archive_, next_);
    ASSERT_TRUE(back.ok()) << back;
  }
  void ExpectTheSameAfterwards() {
    const auto before = Listing(layer_);
    Save();
    PutBack();
    EXPECT_EQ(Listing(next_), before);
  }
  std::vector<std::string> Names() const {
    archive* in = archive_read_new();
    archive_read_support_format_tar(in);
    EXPECT_EQ(archive_read_open_filename(in, archive_.c_str(), 1 << 16), ARCHIVE_OK);
    std::vector<std::string> names;
    archive_entry* entry = nullptr;
    while (archive_read_next_header(in, &entry) == ARCHIVE_OK) names.push_back(archive_entry_pathname(entry));
    archive_read_free(in);
    return names;
  }
  bool Exists(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(next_ + "/" + name));
  }

  std::string folder_, layer_, next_, archive_;
};

TEST_F(LayerTest, ContentsAreKept) {
  Write(At("a"), "one");
  Write(At("folder/b"), std::string(5 << 20, 'x'));
  Write(At("folder/empty"), "");
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, AnEmptyFolderIsKept) {
  std::filesystem::create_directories(At("a/b"));
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, AnEmptyLayerIsNoError) { ExpectTheSameAfterwards(); }

TEST_F(LayerTest, OwnersAreKept) {
  Write(At("folder/a"));
  ASSERT_EQ(chown(At("folder/a").c_str(), 1234, 5678), 0);
  ASSERT_EQ(chown(At("folder").c_str(), 3'000'000'000, 4'000'000'000), 0);
  std::filesystem::create_symlink("a", At("link"));
  ASSERT_EQ(lchown(At("link").c_str(), 1, 2), 0);
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, ModesAreKept) {
  int number = 0;
  for (const mode_t mode : {0000, 0644, 0777, 04755, 02755, 01644}) {
    const std::string path = At(absl::StrCat(number++));
    Write(path);
    ASSERT_EQ(chown(path.c_str(), 1, 1), 0);
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  for (const mode_t mode : {0000, 0555, 01777, 02770}) {
    const std::string path = At(absl::StrCat(number++));
    Write(path + "/file");
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, ThoseOfTheFolderItselfAreKept) {
  ASSERT_EQ(chown(layer_.c_str(), 7, 8), 0);
  ASSERT_EQ(chmod(layer_.c_str(), 01777), 0);
  SetTime(layer_, 1'000'000'000, 5);
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, TimesAreKeptToTheNanosecond) {
  Write(At("folder/file"));
  std::filesystem::create_symlink("file", At("folder/link"));
  SetTime(At("folder/file"), 1'700'000'000, 123'456'789);
  SetTime(At("folder/link"), 1'700'000'001, 1);
  SetTime(At("folder"), -1, 999'999'999);
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, AttributesAreKept) {
  Write(At("folder/file"));
  Attribute(At("folder/file"), "user.text", "a text");
  Attribute(At("folder/file"), "user.bytes", std::string("\0\n=\xff", 4));
  Attribute(At("folder/file"), "trusted.text", "root's");
  Attribute(At("folder"), "user.text", "the folder's");
  // CAP_NET_RAW, as ping has it.
  Attribute(At("folder/file"), "security.capability",
            std::string("\1\0\0\2\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20));
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, HardLinksStayLinks) {
  Write(At("a"), "one file");
  std::filesystem::create_directory(At("folder"));
  ASSERT_EQ(link(At("a").c_str(), At("b").c_str()), 0);
  ASSERT_EQ(link(At("a").c_str(), At("folder/c").c_str()), 0);
  Write(At("d"), "one file");
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, SparseFilesAreReadAsTheyWere) {
  WriteAt(At("1-full"), 0, std::string(10'000, 'f'));
  WriteAt(At("2-hole-first"), kHole, "data");
  WriteAt(At("3-hole-first"), 2 * kHole, "data");
  WriteAt(At("4-between"), 0, "start");
  WriteAt(At("4-between"), kHole, std::string(100'000, 'm'));
  WriteAt(At("4-between"), 3 * kHole, "end");
  WriteAt(At("5-hole-last"), 0, "start");
  ASSERT_EQ(truncate(At("5-hole-last").c_str(), kHole), 0);
  WriteAt(At("6-only-a-hole"), 0, "");
  ASSERT_EQ(truncate(At("6-only-a-hole").c_str(), kHole), 0);
  WriteAt(At("7-full"), 0, std::string(10'000, 'g'));
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, HolesTakeNoRoom) {
  WriteAt(At("a"), 100 * kHole, "data");
  Save();
  PutBack();
  struct stat about = {};
  ASSERT_EQ(stat((next_ + "/a").c_str(), &about), 0);
  EXPECT_EQ(about.st_size, 100 * kHole + 4);
  EXPECT_LT(about.st_blocks * 512, kHole);
  EXPECT_LT(static_cast<off_t>(std::filesystem::file_size(archive_)), kHole);
}

TEST_F(LayerTest, PipesAndDevicesAreKept) {
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0640), 0);
  ASSERT_EQ(mknod(At("null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  ASSERT_EQ(mknod(At("loop").c_str(), S_IFBLK | 0660, makedev(7, 300)), 0);
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, NamesAreBytes) {
  Write(At("gr\xc3\xbc\xc3\x9f\x65/\xe6\x97\xa5\xe6\x9c\xac"), "UTF-8");
  Write(At("\xff\xfe latin\xe9"), "not UTF-8");
  Write(At("new\nline \t\x01"), "control");
  Write(At("-rf"), "a dash");
  Write(At(" "), "a blank");
  std::filesystem::create_symlink("\xff\xfe nowhere", At("link\xfe"));
  ASSERT_EQ(link(At("\xff\xfe latin\xe9").c_str(), At("hard\xfd").c_str()), 0);
  ExpectTheSameAfterwards();
}

TEST_F(LayerTest, LongNamesAreKept) {
  const std::string longest(255, 'n');
  WriteAt(At(longest), 0, "1");
  std::filesystem::create_directories(At(longest.substr(1) + "/" + longest));
  WriteAt(At(longest.substr(1) + "/" + longest + "/" + longest.substr(50)), 0, "2");
  std::filesystem::create_symlink(std::string(4000, 't'), At("link"));
  ExpectTheSameAfterwards();
}

// ---- Links that lead out. ----

TEST_F(LayerTest, LinksAreKeptAndNotFollowed) {
  Write(folder_ + "/outside/secret");
  std::filesystem::create_symlink(folder_ + "/outside", At("folder"));
  std::filesystem::create_symlink("../outside/secret", At("file"));
  std::filesystem::create_symlink("/no/such", At("dangling"));
  ExpectTheSameAfterwards();
  EXPECT_THAT(Names(), Not(Contains(HasSubstr("secret"))));
}

TEST_F(LayerTest, ALinkInTheWayIsReplacedAndNotFollowed) {
  Write(At("file"), "new");
  Write(At("folder/file"), "new");
  Save();
  Write(folder_ + "/outside/file", "outside");
  Write(next_ + "/etc/file", "etc");
  std::filesystem::create_symlink(folder_ + "/outside/file", next_ + "/file");
  std::filesystem::create_symlink("etc", next_ + "/folder");
  PutBack();
  EXPECT_EQ(ReadFile(folder_ + "/outside/file").value_or(""), "outside");
  EXPECT_EQ(ReadFile(next_ + "/etc/file").value_or(""), "etc");
  EXPECT_EQ(Listing(next_ + "/folder"), Listing(At("folder")));
  EXPECT_EQ(ReadFile(next_ + "/file").value_or(""), "new");
}

TEST_F(LayerTest, AFolderInThePlaceOfALinkOfTheImageHidesNothingElse) {
  Write(At("run/new"));
  Attribute(At("run"), "trusted.overlay.opaque", "y");
  Save();
  Write(next_ + "/etc/kept", "kept");
  std::filesystem::create_symlink("etc", next_ + "/run");
  PutBack();
  EXPECT_EQ(ReadFile(next_ + "/etc/kept").value_or(""), "kept");
  EXPECT_TRUE(Exists("run/new"));
  EXPECT_FALSE(Exists("etc/new"));
}

// Whoever can write to the tier can write such a name.
TEST_F(LayerTest, NoNameInAnArchiveLeadsOut) {
  archive* out = archive_write_new();
  archive_write_set_format_pax(out);
  ASSERT_EQ(archive_write_open_filename(out, archive_.c_str()), ARCHIVE_OK);
  for (const std::string& name : {std::string("../../../escaped"), folder_ + "/escaped"}) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, 0);
    EXPECT_EQ(archive_write_header(out, entry), ARCHIVE_OK);
    archive_entry_free(entry);
  }
  archive_write_close(out);
  archive_write_free(out);
  PutLayerBack(archive_, next_).IgnoreError();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/escaped"));
  EXPECT_FALSE(std::filesystem::exists("/tmp/escaped"));
  EXPECT_FALSE(std::filesystem::exists("/escaped"));
}

// ---- What the layer hides of those below. ----

TEST_F(LayerTest, WhatIsHiddenIsAFileOfThatName) {
  Hide(At("folder/gone"));
  Hide(At("gone"));
  Save();
  EXPECT_THAT(Names(), Contains(HasSubstr("folder/.wh.gone")));
  EXPECT_THAT(Names(), Contains(".wh.gone"));
  EXPECT_THAT(Names(), Not(Contains("gone")));
}

TEST_F(LayerTest, WhatIsHiddenIsRemovedFromTheNext) {
  Hide(At("file"));
  Hide(At("folder"));
  Hide(At("deep/file"));
  Hide(At("never/there"));
  Save();
  Write(next_ + "/file");
  Write(next_ + "/folder/a/b");
  Write(next_ + "/deep/file");
  Write(next_ + "/deep/kept");
  PutBack();
  EXPECT_FALSE(Exists("file"));
  EXPECT_FALSE(Exists("folder"));
  EXPECT_FALSE(Exists("deep/file"));
  EXPECT_TRUE(Exists("deep/kept"));
  EXPECT_FALSE(Exists(".wh.file"));
}

TEST_F(LayerTest, OfALinkThatIsHiddenTheTargetStays) {
  Hide(At("link"));
  Save();
  Write(next_ + "/target/file");
  std::filesystem::create_symlink("target", next_ + "/link");
  PutBack();
  EXPECT_FALSE(Exists("link"));
  EXPECT_TRUE(Exists("target/file"));
}

TEST_F(LayerTest, AnOpaqueFolderHasNothingOfThoseBelow) {
  Write(At("folder/new"));
  Write(At("folder/sub/new"));
  Attribute(At("folder"), "trusted.overlay.opaque", "y");
  Save();
  EXPECT_THAT(Names(), Contains("folder/.wh..wh..opq"));
  Write(next_ + "/folder/old");
  Write(next_ + "/folder/sub/old");
  PutBack();
  EXPECT_FALSE(Exists("folder/old"));
  EXPECT_FALSE(Exists("folder/sub/old"));
  EXPECT_TRUE(Exists("folder/new"));
  EXPECT_TRUE(Exists("folder/sub/new"));
  EXPECT_FALSE(Exists("folder/.wh..wh..opq"));
}

TEST_F(LayerTest, TheOverlaysOwnMarksAreNotInTheNext) {
  Write(At("folder/new"));
  Attribute(At("folder"), "trusted.overlay.opaque", "y");
  Attribute(At("folder"), "trusted.overlay.origin", "a handle");
  Attribute(At("folder"), "trusted.overlay.impure", "y");
  Attribute(At("folder"), "user.kept", "kept");
  Save();
  PutBack();
  EXPECT_EQ(Attributes(next_ + "/folder"), " user.kept=kept");
}

TEST_F(LayerTest, AMarkThatIsNotSetHidesNothing) {
  Write(At("folder/new"));
  Attribute(At("folder"), "trusted.overlay.opaque", "n");
  Save();
  EXPECT_THAT(Names(), Not(Contains("folder/.wh..wh..opq")));
}

// Their content, or their place, is in another layer, which is not saved.
TEST_F(LayerTest, FilesWithoutTheirContentAreRefusedByName) {
  Write(At("folder/file"));
  Attribute(At("folder/file"), "trusted.overlay.metacopy", "");
  const absl::Status saved = SaveLayer(layer_, archive_);
  EXPECT_TRUE(absl::IsFailedPrecondition(saved)) << saved;
  EXPECT_THAT(std::string(saved.message()), HasSubstr("folder/file"));
}

TEST_F(LayerTest, FoldersThatWereRenamedInTheOverlayAreRefusedByName) {
  Write(At("folder/file"));
  Attribute(At("folder"), "trusted.overlay.redirect", "/old");
  const absl::Status saved = SaveLayer(layer_, archive_);
  EXPECT_TRUE(absl::IsFailedPrecondition(saved)) << saved;
  EXPECT_THAT(std::string(saved.message()), HasSubstr("folder"));
}

TEST_F(LayerTest, AFolderTakesThePlaceOfAFileAndTheOtherWayRound) {
  Write(At("a/file"), "new");
  Write(At("b"), "new");
  Save();
  Write(next_ + "/a", "old");
  Write(next_ + "/b/file", "old");
  PutBack();
  EXPECT_EQ(Listing(next_), Listing(layer_));
}

TEST_F(LayerTest, WhatIsThereIsWrittenOver) {
  Write(At("file"), "new");
  Save();
  Write(next_ + "/file", "a much longer old content");
  ASSERT_EQ(link((next_ + "/file").c_str(), (next_ + "/other").c_str()), 0);
  PutBack();
  EXPECT_EQ(ReadFile(next_ + "/file").value_or(""), "new");
  EXPECT_EQ(ReadFile(next_ + "/other").value_or(""), "a much longer old content");
}

// ---- What cannot be saved. ----

TEST_F(LayerTest, ANameThatWouldHideAnotherIsRefused) {
  Write(At("folder/.wh.name"));
  const absl::Status saved = SaveLayer(layer_, archive_);
  EXPECT_TRUE(absl::IsFailedPrecondition(saved)) << saved;
  EXPECT_THAT(std::string(saved.message()), HasSubstr("folder/.wh.name"));
}

// Whose process listens at it is dumped with it, and CRIU makes the name again.
TEST_F(LayerTest, ASocketIsLeftOut) {
  Write(At("file"));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, At("socket").c_str());
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  Save();
  EXPECT_THAT(Names(), Contains("file"));
  EXPECT_THAT(Names(), Not(Contains("socket")));
  PutBack();
  EXPECT_FALSE(Exists("socket"));
}

TEST_F(LayerTest, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(std::string(SaveLayer(At("no"), archive_).message()), HasSubstr(At("no")));
  Save();
  EXPECT_THAT(std::string(PutLayerBack(archive_, next_ + "/no").message()), HasSubstr(next_ + "/no"));
}

TEST_F(LayerTest, AnArchiveThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(std::string(SaveLayer(layer_, folder_ + "/no/a.tar").message()),
              HasSubstr(folder_ + "/no/a.tar"));
}

TEST_F(LayerTest, AnArchiveThatIsNotThereIsNamed) {
  EXPECT_THAT(std::string(PutLayerBack(archive_, next_).message()), HasSubstr(archive_));
}

TEST_F(LayerTest, ATornArchiveIsAnError) {
  Write(At("a"), std::string(3000, 'a'));
  Write(At("b"), std::string(3000, 'b'));
  Save();
  const std::string whole = ReadFile(archive_).value_or("");
  // The end of a file's content comes right before the header that follows, or before the end of all.
  const size_t content = whole.rfind(std::string(3000, 'b'));
  ASSERT_NE(content, std::string::npos);
  for (const size_t size : {size_t{0}, size_t{100}, content + 1, content + 1500}) {
    Write(archive_, whole.substr(0, size));
    const absl::Status back = PutLayerBack(archive_, next_);
    EXPECT_FALSE(back.ok()) << size;
    EXPECT_THAT(std::string(back.message()), HasSubstr(archive_));
  }
}

TEST_F(LayerTest, WhatIsNoArchiveIsAnError) {
  Write(archive_, std::string(20'000, 'x'));
  EXPECT_FALSE(PutLayerBack(archive_, next_).ok());
}

}  // namespace
}  // namespace siding
