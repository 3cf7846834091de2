package deploy

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlayFolder is where the overlay is put for rendering.
const overlayFolder = "overlay"

// maxOverlayFile is how large one file of an overlay may be, in bytes.
const maxOverlayFile = 4 << 20

// copyOverlay puts the user's folder beside the base. A Component is asked for: it
// changes what it is added to, and need not know where the base is.
func (o Options) copyOverlay(memory filesys.FileSystem) error {
	disk := o.Disk
	if disk == nil {
		disk = filesys.MakeFsOnDisk()
	}
	if err := checkComponent(disk, o.Overlay); err != nil {
		return err
	}
	return disk.Walk(o.Overlay, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		if info.Size() > maxOverlayFile {
			return fmt.Errorf("%s has %d bytes; a file of an overlay may have %d", name, info.Size(), maxOverlayFile)
		}
		relative, err := filepath.Rel(o.Overlay, name)
		if err != nil {
			return err
		}
		data, err := disk.ReadFile(name)
		if err != nil {
			return err
		}
		return memory.WriteFile(filepath.ToSlash(filepath.Join(overlayFolder, relative)), data)
	})
}

// checkComponent returns an error if the folder has no Component.
func checkComponent(disk filesys.FileSystem, folder string) error {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		file := filepath.Join(folder, name)
		if !disk.Exists(file) {
			continue
		}
		data, err := disk.ReadFile(file)
		if err != nil {
			return err
		}
		var meta types.TypeMeta
		if err := yaml.Unmarshal(data, &meta); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if meta.Kind != types.ComponentKind {
			return fmt.Errorf("%s has kind %q; an overlay is changed into what is rendered, so write \"apiVersion: %s\" and \"kind: %s\", with patches and no reference to a base", file, meta.Kind, types.ComponentVersion, types.ComponentKind)
		}
		return nil
	}
	return fmt.Errorf("%s has no kustomization.yaml; an overlay is a folder with a kustomize Component", folder)
}
