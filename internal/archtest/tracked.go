package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// LargeFile is the size in bytes above which a tracked file must be listed in Large.
const LargeFile = 256 << 10

// Large lists the tracked files that may be larger than LargeFile, each with the reason. Every clone downloads them,
// and git keeps every version of them forever.
var Large = map[string]string{}

// A TrackedFile is one file that git tracks.
type TrackedFile struct {
	Path string // slash-separated, relative to the root
	Exec bool   // git gives it the mode of an executable
}

// Tracked lists the files that git tracks. Outside of a git checkout, as in an unpacked release, these are all files.
func Tracked(root string) ([]TrackedFile, error) {
	if _, err := os.Stat(filepath.Join(root, ".git")); errors.Is(err, fs.ErrNotExist) {
		return walked(root)
	}
	cmd := exec.Command("git", "ls-files", "--stage", "-z")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("archtest: git ls-files: %w", err)
	}
	var files []TrackedFile
	for entry := range strings.SplitSeq(string(out), "\x00") {
		info, path, ok := strings.Cut(entry, "\t") // mode, object and stage come before the tab
		if ok {
			files = append(files, TrackedFile{path, strings.HasPrefix(info, "100755")})
		}
	}
	return files, nil
}

func walked(root string) ([]TrackedFile, error) {
	paths, err := Files(root)
	if err != nil {
		return nil, err
	}
	var files []TrackedFile
	for _, path := range paths {
		info, err := os.Stat(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil {
			return nil, err
		}
		files = append(files, TrackedFile{path, info.Mode()&0o111 != 0})
	}
	return files, nil
}

// TrackedFault returns a sentence that says why a file does not belong in the repository, or "" if it does.
func TrackedFault(root string, file TrackedFile) (string, error) {
	f, err := os.Open(filepath.Join(root, filepath.FromSlash(file.Path)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // deleted, and the deletion is not staged yet
	}
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	head := make([]byte, 1024)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	return fault(file, head[:n], info.Size()), nil
}

// binaries are the first bytes of programs and libraries: ELF, PE, Mach-O in its widths and byte orders and with
// several architectures, and WebAssembly.
var binaries = map[string]string{
	"\x7fELF": "an ELF", "MZ": "a PE",
	"\xfe\xed\xfa\xce": "a Mach-O", "\xfe\xed\xfa\xcf": "a Mach-O", "\xce\xfa\xed\xfe": "a Mach-O",
	"\xcf\xfa\xed\xfe": "a Mach-O", "\xca\xfe\xba\xbe": "a Mach-O", "\x00asm": "a WebAssembly",
}

func fault(file TrackedFile, head []byte, size int64) string {
	for magic, kind := range binaries {
		// Text may begin with the letters MZ, but has no zero byte.
		if bytes.HasPrefix(head, []byte(magic)) && (magic != "MZ" || bytes.IndexByte(head, 0) >= 0) {
			return fmt.Sprintf("%s is %s binary: remove it with git rm, and name it in .gitignore", file.Path, kind)
		}
	}
	if file.Exec && !bytes.HasPrefix(head, []byte("#!")) {
		return fmt.Sprintf("%s has the mode of an executable and is not a script: run git update-index --chmod=-x on it", file.Path)
	}
	if _, listed := Large[file.Path]; size > LargeFile && !listed {
		return fmt.Sprintf("%s has %d bytes, more than %d: make it smaller, or list it with the reason in Large of "+
			"internal/archtest/tracked.go", file.Path, size, LargeFile)
	}
	return ""
}
