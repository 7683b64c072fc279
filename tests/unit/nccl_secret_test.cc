// The secret of a run: proofs of possession, and the files from which it is read.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "exec/nccl/rendezvous.h"
#include "exec/nccl/secret.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

namespace fs = std::filesystem;

std::string hex(const exec::Digest& digest) {
  std::string text;
  for (const std::byte byte : digest)
    for (const int shift : {4, 0})
      text += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> shift & 15];
  return text;
}

std::string hash(const std::string& text) {
  return hex(exec::hash_sha256(std::as_bytes(std::span(text))));
}

std::string hash(const std::string& key, const std::string& text) {
  return hex(exec::hash_with_key(key, std::as_bytes(std::span(text))));
}

/// A temporary folder of mode 0700, removed by the destructor.
class OwnFolder {
 public:
  OwnFolder() {
    std::string name = (fs::temp_directory_path() / "bubblescope-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~OwnFolder() { fs::remove_all(path_); }

  std::string path() const { return path_; }
  std::string file(const std::string& text, mode_t mode) const {
    const std::string path = path_ + "/secret";
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }

 private:
  std::string path_;
};

std::string refusal(const exec::SecretSource& source) {
  return error_of([&] { exec::read_secret(source); });
}

// The examples of FIPS 180-4, and a length at which the padding takes a block of its own.
TEST(NcclSecret, HashesAsTheStandardSays) {
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, cases 1, 2 and 6.
TEST(NcclSecret, HashesWithAKeyAsTheStandardSays) {
  EXPECT_EQ(hash(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hash("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hash(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(NcclSecret, AreEqualOnlyWhereAllBytesAre) {
  const exec::Digest digest = exec::hash_sha256({});
  EXPECT_TRUE(exec::are_equal(digest, digest));
  for (std::size_t at = 0; at < digest.size(); ++at) {
    exec::Digest other = digest;
    other[at] ^= std::byte{1};
    EXPECT_FALSE(exec::are_equal(digest, other)) << at;
  }
}

TEST(NcclSecret, CanNeitherBeShortNorMadeTwice) {
  EXPECT_NE(refusal({"fifteen letters", ""}).find("a secret of 15 characters can be guessed"),
            std::string::npos);
  EXPECT_EQ(refusal({"sixteen letters!", ""}), "");
  EXPECT_NE(exec::Secret::make().text(), exec::Secret::make().text());
  EXPECT_EQ(exec::Secret::make().text().size(), 64u);
}

TEST(NcclSecret, IsTakenFromAFileThatIsOursAlone) {
  const OwnFolder folder;
  const std::string text = "a secret of the tests";
  EXPECT_EQ(exec::read_secret({"", folder.file(text + "\n", 0600)}).text(), text);
  for (const mode_t mode : {0640, 0604, 0660, 0610})
    EXPECT_NE(refusal({"", folder.file(text, mode)}).find("can be read by others; "),
              std::string::npos)
        << mode;
  const std::string file = folder.file(text, 0600);
  fs::create_symlink(file, folder.path() + "/link");
  EXPECT_NE(refusal({"", folder.path() + "/link"}).find("cannot be read"), std::string::npos);
  ASSERT_EQ(mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal({"", folder.path() + "/pipe"}).find("is not in a regular file"),
            std::string::npos);
  EXPECT_NE(refusal({"", folder.path() + "/none"}).find("cannot be read: No such file"),
            std::string::npos);
}

TEST(NcclSecret, IsMissedWithWordsThatSayHowToSetIt) {
  const std::string text = refusal({});
  for (const char* word : {"BUBBLESCOPE_SECRET=", "BUBBLESCOPE_SECRET_FILE", "0600", "srun"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(NcclSecret, IsLeftInAFolderThatIsOursAlone) {
  const OwnFolder folder;
  EXPECT_EQ(exec::find_secret_folder(folder.path()), folder.path());
  chmod(folder.path().c_str(), 0755);
  const std::string other = exec::find_secret_folder(folder.path());
  EXPECT_EQ(other, "/tmp/bubblescope-" + std::to_string(geteuid()));
  struct stat found {};
  ASSERT_EQ(lstat(other.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
}

TEST(NcclSecret, IsLeftInAFileOfMode0600AsLongAsItIsNeeded) {
  const OwnFolder folder;
  const std::string path = exec::secret_path(folder.path(), 1234);
  std::ofstream(path) << "of an earlier run that was killed";
  chmod(path.c_str(), 0644);
  {
    const exec::Secret secret = exec::Secret::make();
    const exec::SecretFile file(folder.path(), 1234, secret);
    struct stat found {};
    ASSERT_EQ(lstat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
    EXPECT_EQ(exec::read_secret({"", path}).text(), secret.text());
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

/// One process finds the secret in the file; another has the secret of an earlier run.
TEST(NcclSecret, ProcessesMeetByTheFile) {
  const OwnFolder folder;
  const exec::TcpSocket listener = exec::listen_at({"127.0.0.1", 0});
  const std::uint16_t port = exec::port_of(listener);
  const auto call_as = [&](const std::function<exec::Secret()>& find_secret) {
    const pid_t process = fork();
    if (process != 0) return process;
    int status = 1;
    try {
      exec::connect_to_rank_0({"127.0.0.1", port}, {1, 2}, {10'000'000'000, nullptr},
                              {find_secret});
      status = 0;
    } catch (const Error&) {
    }
    _exit(status);
  };
  const pid_t stranger = call_as([] { return exec::Secret("a secret of yesterday"); });
  usleep(50'000);
  const pid_t other = call_as([&] {
    return exec::read_secret({"", exec::secret_path(folder.path(), port)});
  });
  usleep(50'000);  // both have connected; the file is written before rank 0 answers
  const exec::Secret secret = exec::Secret::make();
  std::optional<exec::SecretFile> file(std::in_place, folder.path(), port, secret);
  const exec::SocketTransport link =
      exec::accept_ranks(listener, 2, {10'000'000'000, nullptr}, {secret});
  int status = 1;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  waitpid(stranger, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace bubblescope::tests
