// A folder with an authority and what it has issued, for tests.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "common/clock.h"
#include "common/files.h"
#include "common/tls/authority.h"
#include "gtest/gtest.h"

namespace siding {

using Kind = CertificateName::Kind;

class TlsTest : public testing::Test {
 protected:
  static constexpr Duration kHour = std::chrono::hours(1);

  TlsTest() : folder_(mkdtemp(name_)) {
    Write("ca.pem", authority_.certificate);
    Write("other.pem", other_authority_.certificate);
  }
  ~TlsTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text, int mode = 0600) const {
    ASSERT_TRUE(WriteFileAtomically(Path(name), text, mode).ok());
  }
  // The files of what was issued, with `ca` to believe.
  TlsFiles Keep(const std::string& name, const absl::StatusOr<Issued>& issued,
                const std::string& ca = "ca.pem") const {
    EXPECT_TRUE(issued.ok()) << issued.status();
    Write(name + ".pem", issued->certificate);
    Write(name + ".key", issued->key);
    return {Path(ca), Path(name + ".pem"), Path(name + ".key")};
  }
  absl::StatusOr<Issued> Issue(Kind kind, const std::string& name, Duration lifetime = kHour) const {
    return IssueFor({kind, name}, authority_, lifetime, now_);
  }
  absl::StatusOr<Issued> IssueServer(const std::string& host = "127.0.0.1") const {
    return IssueForHosts({host}, authority_, kHour, now_);
  }

  char name_[32] = "/tmp/siding-tls-XXXXXX";
  const std::string folder_;
  const Time now_ = SystemClock().Now();
  const Issued authority_ = *MakeAuthority(std::chrono::hours(24), now_);
  const Issued other_authority_ = *MakeAuthority(std::chrono::hours(24), now_);
};

}  // namespace siding
