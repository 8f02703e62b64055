// A folder for the library without GPUs (fake_cuda.cc), for tests: named by $FAKE_CUDA for as long as it
// lives.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace siding {

class FakeCudaFolder {
 public:
  FakeCudaFolder() {
    char name[] = "/tmp/siding-gpu-test.XXXXXX";
    path_ = mkdtemp(name);
    setenv("FAKE_CUDA", path_.c_str(), 1);
  }
  ~FakeCudaFolder() {
    unsetenv("FAKE_CUDA");
    std::filesystem::remove_all(path_);
  }
  FakeCudaFolder(const FakeCudaFolder&) = delete;
  FakeCudaFolder& operator=(const FakeCudaFolder&) = delete;

  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
  }
  // "CALL RESULT", see fake_cuda.cc.
  void Fault(const std::string& text) const { Write("fault", text); }
  void NoFault() const { std::filesystem::remove(path_ + "/fault"); }
  std::string Read(const std::string& name) const {
    std::string text;
    std::getline(std::ifstream(path_ + "/" + name), text);
    return text;
  }

 private:
  std::string path_;
};

}  // namespace siding
