# Run at the installation: `folder` is there, and those above it. Those that are made are for all to read and nobody else to write,
# whatever umask the installer has, which CMake would leave to it. Those that were there keep their mode.
if(NOT IS_DIRECTORY "$ENV{DESTDIR}${folder}")
  execute_process(COMMAND install -d -m 0755 "$ENV{DESTDIR}${folder}" COMMAND_ERROR_IS_FATAL ANY)
endif()
