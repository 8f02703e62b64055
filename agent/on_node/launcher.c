/* siding-launcher: stands on a node, under the name of a program that came there out of an image, and runs it
 * with the loader and the libraries that came with it. The node's own may be those of another system. Of a
 * file FOLDER/NAME it makes
 *
 *   FOLDER/ld-linux-x86-64.so.2 --inhibit-cache --library-path FOLDER/lib FOLDER/programs/NAME ARGUMENT...
 *
 * With SIDING_CRIU_APART in the environment, `criu` leaves the cgroups that it was started in. When the
 * container of an agent is ended, all that is in its cgroups is killed, and a criu that is killed in the
 * middle of a dump leaves processes that cannot go on.
 *
 * Plain C and linked statically: there is nothing on a node that it could count on. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void JoinTop(const char* mount_point) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/cgroup.procs", mount_point) >= (int)sizeof path) return;
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  /* Where it may not be, it stays where it is. */
  if (write(file, "0", 1) != 1) fprintf(stderr, "siding-launcher: cannot join %s\n", mount_point);
  close(file);
}

static void LeaveCgroups(void) {
  FILE* mounts = fopen("/proc/self/mountinfo", "re");
  if (mounts == NULL) return;
  char* line = NULL;
  size_t size = 0;
  while (getline(&line, &size, mounts) > 0) {
    const char* type = strstr(line, " - cgroup");
    char point[PATH_MAX];
    /* ID PARENT DEVICE ROOT POINT */
    if (type != NULL && sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1) JoinTop(point);
  }
  free(line);
  fclose(mounts);
}

int main(int argc, char** argv) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) {
    perror("siding-launcher: /proc/self/exe");
    return 127;
  }
  self[length] = '\0';
  char* name = strrchr(self, '/');
  *name++ = '\0';
  if (strcmp(name, "criu") == 0 && getenv("SIDING_CRIU_APART") != NULL) LeaveCgroups();
  char loader[PATH_MAX + 64], libraries[PATH_MAX + 64], program[2 * PATH_MAX];
  snprintf(loader, sizeof loader, "%s/ld-linux-x86-64.so.2", self);
  snprintf(libraries, sizeof libraries, "%s/lib", self);
  snprintf(program, sizeof program, "%s/programs/%s", self, name);
  char** words = calloc((size_t)argc + 5, sizeof *words);
  if (words == NULL) return 127;
  words[0] = loader;
  words[1] = "--inhibit-cache";
  words[2] = "--library-path";
  words[3] = libraries;
  words[4] = program;
  for (int i = 1; i < argc; ++i) words[4 + i] = argv[i];
  execv(loader, words);
  fprintf(stderr, "siding-launcher: ");
  perror(loader);
  return 127;
}
