// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Process.h"
#include "Files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

using namespace attn::rt;

static std::vector<char *> pointers(const std::vector<std::string> &strings) {
  std::vector<char *> result;
  for (const std::string &s : strings)
    result.push_back(const_cast<char *>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

Result<ProcessOutput> attn::rt::runProcess(const std::vector<std::string> &argv,
                                           const std::vector<std::string> &environment) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return Error{fmt::format("cannot run `{}`: {}", argv[0], std::strerror(errno)), {}, {}};
  Fd readEnd(ends[0]), writeEnd(ends[1]);

  std::vector<std::string> strings = environment;
  for (char **item = environ; item && *item; ++item) {
    std::string_view name = *item;
    name = name.substr(0, name.find('=') + 1);
    bool replaced = false;
    for (const std::string &ours : environment)
      replaced |= ours.rfind(name, 0) == 0;
    if (!replaced)
      strings.emplace_back(*item);
  }

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writeEnd.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, writeEnd.get(), 2);
  pid_t pid = 0;
  int failed =
      ::posix_spawnp(&pid, argv[0].c_str(), &actions, nullptr, pointers(argv).data(), pointers(strings).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed)
    return Error{fmt::format("cannot run `{}`: {}", argv[0], std::strerror(failed)), {}, {}};
  ::close(writeEnd.release());

  ProcessOutput output;
  char buffer[4096];
  for (;;) {
    ssize_t got = ::read(readEnd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    output.text.append(buffer, static_cast<size_t>(got));
  }
  int status = 0;
  pid_t waited;
  do
    waited = ::waitpid(pid, &status, 0);
  while (waited < 0 && errno == EINTR);
  if (waited == pid)
    output.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return output;
}

static bool isProgram(const std::string &path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string attn::rt::findProgram(const std::string &name) {
  if (name.find('/') != std::string::npos)
    return isProgram(name) ? name : "";
  const char *path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    size_t colon = rest.find(':');
    std::string directory(rest.substr(0, colon));
    std::string candidate = (directory.empty() ? "." : directory) + "/" + name;
    if (isProgram(candidate))
      return candidate;
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}
